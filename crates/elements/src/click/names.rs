//! The names of Click's classes.

/// Those of its user-level driver, with the ones in its source that it is built with on request.
pub(super) const USER_LEVEL: &str = "\
    ACKResponder ACKResponder2 ACKRetrySender ACKRetrySender2 ARPFaker ARPPrint ARPQuerier ARPResponder ARPTable \
    AdaptiveRED AddressInfo AddressTranslator AdjustTimestamp Aes AggregateCounter AggregateFilter \
    AggregateFirst AggregateIP AggregateIPAddrPair AggregateIPFlows AggregateLast AggregateLength \
    AggregatePacketCounter AggregatePaint AiroInfo Align AlignmentInfo AnnotationInfo AnonymizeIPAddr \
    AthdescDecap AthdescEncap AutoRateFallback AvailableRates AverageCounter B8B10 BIM BalancedThreadSched \
    BandwidthMeter BandwidthRatedSplitter BandwidthRatedUnqueue BandwidthShaper BigHashMapTest BigintTest \
    BitvectorTest Block BlockThread BottleneckMetric BufferConverter Burster Bypass CLPTest CPUQueue CPUSwitch \
    ChangeUID ChatterSocket CheckARPHeader CheckCRC32 CheckGridHeader CheckICMPHeader CheckIP6Header \
    CheckIPHeader CheckIPHeader2 CheckLength CheckPacket CheckPaint CheckPattern CheckTCPHeader CheckUDPHeader \
    ChuckCheck Classifier ClickyInfo Clipboard CoDel CompareBlock ComparePackets ConfParseTest ControlSocket \
    CopyFlowID CopyTCPSeq Counter CryptoTest DPDKInfo DRRSched DSDVRouteTable DSRArpTable DSRRouteTable \
    DebugBridge DecIP6HLIM DecIPTTL DelayShaper DelayUnqueue DequeTest Des DevirtualizeInfo DirectIPLookup \
    Discard DiscardNoFree DriverManager DropBroadcasts DupPath DynamicUDPIPEncap E2ELossMetric ETX2Metric \
    ETXMetric EnsureDPDKBuffer EnsureEther EraseIPPayload Error ErrorElement ErrorTest EstimateRouterRegion \
    EtherCount EtherEncap EtherMirror EtherPauseSource EtherRewrite EtherSpanTree EtherSwitch EtherVLANEncap \
    EtherVlanEncap ExtraDecap ExtraEncap FTPPortMapper FastTCPFlows FastUDPFlows FastUDPSource FastUDPSourceIP6 \
    FilterByGridHops FilterByRange FilterFailures FilterPhyErr FilterTX FixDstLoc FixIPSrc FixSrcLoc \
    FloodingLocQuerier FlowInfo ForceICMP ForceIP ForceTCP ForceUDP FromCapDump FromDAGDump FromDPDKDevice \
    FromDevice FromDump FromFlanDump FromHandler FromHost FromIPSummaryDump FromNLANRDump FromNetFlowSummaryDump \
    FromRawSocket FromSocket FromTcpdump FrontDropQueue FullNoteQueue FunctionTest GetEtherAddress GetIP6Address \
    GetIPAddress GridEncap GridGatewayInfo GridHeaderInfo GridLocationInfo GridLocationInfo2 GridLogger \
    GridProbeHandler GridProbeReplyReceiver GridProbeSender GridProxy GridRouteTable GridSRForwarder GridTxError \
    HandlerTask HashSwitch HashTableTest HeapTest HopcountMetric HostEtherFilter Hub ICMP6Error ICMPError \
    ICMPIPEncap ICMPPingEncap ICMPPingResponder ICMPPingRewriter ICMPPingSource ICMPRewriter ICMPSendPings \
    IP6Encap IP6Fragmenter IP6Mirror IP6NDAdvertiser IP6NDSolicitor IP6Print IPAddrPairRewriter IPAddrRewriter \
    IPClassifier IPEncap IPFieldInfo IPFilter IPFlowRawSockets IPFragmenter IPGWOptions IPInputCombo IPMirror \
    IPNameInfo IPOutputCombo IPPrint IPRateMonitor IPReassembler IPRewriter IPRewriterPatterns IPsecAuthHMACSHA1 \
    IPsecAuthSHA1 IPsecESPEncap IPsecESPUnencap IPsecEncap Idle IncrementSeqNo InfiniteSource InputSwitch \
    KernelFilter KernelHandlerProxy KernelTap KernelTun LIRMetric LinearIPLookup LinkStat LinkTable \
    LinkTestReceiver LinkTester LinkTracker LinkUnqueue LinuxIPLookup ListTest ListenEtherSwitch LocFromFile \
    LocQueryResponder LocationTable LookupGeographicGridRoute LookupIP6Route LookupIPRouteMP \
    LookupLocalGridRoute LookupLocalGridRoute2 MSQueue MTDieTest MadwifiRate MarkIP6Header MarkIPCE MarkIPHeader \
    MarkMACHeader McastSocket Message Meter MixedQueue MovementSimulator NeighborhoodTest NotifierDebug \
    NotifierQueue NotifierTest Null Null1 Null2 Null3 Null4 Null5 Null6 Null7 Null8 NullTask PEP PI PacketLogger \
    PacketLogger2 PacketStore PacketTest Pad Paint PaintSwitch PaintTee PingPong PortInfo Print Print80211 \
    PrintAiro PrintGrid PrintOld PrintTXFeedback PrintWifi PrioSched Prism2Decap Prism2Encap ProbeTXRate \
    ProgressBar ProtocolTranslator46 ProtocolTranslator64 PullNull PullSwitch PullTee PushAnno PushNull Queue \
    QueueThreadTest1 QueueThreadTest2 QueueYankTest QuickNoteQueue QuitWatcher RED RFC2507Comp RFC2507Decomp \
    RFC2507c RFC2507d RIPSend RXStats RadioSim RadiotapDecap RadiotapEncap RadixIPLookup RadixIPsecLookup \
    RandomBitErrors RandomSample RandomSeed RandomSource RandomSwitch RangeIPLookup RatedSource RatedSplitter \
    RatedUnqueue RawSocket ReadAnno Reframe Resize RoundRobinIPMapper RoundRobinSched RoundRobinSwitch \
    RoundRobinUnqueue SATable SchedOrderTest ScheduleInfo Scramble Script SendGridHello SendGridLRHello \
    SendPattern SetAnnoByte SetCRC32 SetEtherAddress SetGridChecksum SetIP6Address SetIP6DSCP SetIPAddress \
    SetIPChecksum SetIPDSCP SetIPECN SetNoAck SetPacketType SetRTS SetRandIPAddress SetTCPChecksum SetTXPower \
    SetTXRate SetTimestamp SetTimestampDelta SetUDPChecksum SetVLANAnno SetVlanAnno Shaper SimpleIdle \
    SimpleLocQuerier SimplePrioSched SimplePullSwitch SimpleQueue SimpleRoundRobinSched SnoopTCP Socket SortTest \
    SortedIPLookup SortedTaskSched SourceIPHashMapper SpinlockAcquire SpinlockInfo SpinlockPush SpinlockRelease \
    StatelessTCPResponder StaticIPLookup StaticPullSwitch StaticSwitch StaticThreadSched StoreData \
    StoreEtherAddress StoreIPAddress StoreTimestamp StoreUDPTimeSeqRecord StrideSched StrideSwitch Strip \
    StripDSRHeader StripEtherVLANHeader StripEtherVlanHeader StripIPHeader StripToNetworkHeader Suppressor \
    Switch TCPAck TCPBuffer TCPConn TCPDemux TCPFragmenter TCPIPSend TCPReflector TCPRewriter TaskThreadTest Tee \
    ThreadSafeQueue ThresholdMetric TimeFilter TimeRange TimeSortedSched TimedSink TimedSource TimedUnqueue \
    TimerTest TimestampAccum ToDPDKDevice ToDevice ToDump ToHost ToIPFlowDumps ToIPSummaryDump ToRawSocket \
    ToSocket TokenBucketTest ToyTCP Truncate TruncateIPPayload UDPIP6Encap UDPIPEncap UDPRewriter UMLSwitch \
    Unqueue Unqueue2 Unstrip UnstripDSRHeader UnstripIPHeader UpdateGridRoutes UpstreamNotifier VLANDecap \
    VLANEncap VectorTest WebGen WepDecap WepEncap WifiDecap WifiDefrag WifiDupeFilter WifiEncap WifiFragment \
    WifiSeq WirelessInfo YarvisMetric";

/// Those of its user-level driver that there are not going to be here, and what does their work.
pub(super) const INSTEAD: &[(&str, &str)] = &[
    (
        "ChatterSocket",
        "messages go to standard error, which tee(1) or a service manager passes on, and ControlSocket reads handlers",
    ),
    ("DPDKInfo", "FromDevice and ToDevice with METHOD AFXDP need no setting up"),
    (
        "Error",
        "it stands for what Click's parser could not read, and Message with ERROR keeps a graph from starting",
    ),
    (
        "ErrorElement",
        "it stands for what Click's parser could not read, and Message with ERROR keeps a graph from starting",
    ),
    ("FromCapDump", "FromIPSummaryDump reads lines, with a `!data` line in front that names their columns"),
    ("FromDAGDump", "dagconvert or editcap makes a pcap file of it, which FromDump reads"),
    ("FromDPDKDevice", "FromDevice with METHOD AFXDP takes packets at the card"),
    ("FromFlanDump", "FromIPSummaryDump reads lines, with a `!data` line in front that names their columns"),
    ("FromNLANRDump", "a converter such as tsh2pcap makes a pcap file of it, which FromDump reads"),
    (
        "FromNetFlowSummaryDump",
        "FromIPSummaryDump reads lines, with a `!data` line in front that names their columns",
    ),
    ("FromTcpdump", "tcpdump -w writes a file with whole packets, which FromDump reads"),
    ("RFC2507Comp", "nothing compresses headers: links for which that pays are the kernel's, with pppd(8)"),
    ("RFC2507Decomp", "nothing compresses headers: links for which that pays are the kernel's, with pppd(8)"),
    ("ToDPDKDevice", "ToDevice with METHOD AFXDP gives packets to the card"),
];

/// Those of its kernel drivers and of its simulator alone, and what does their work here.
pub(super) const KERNEL: &[(&str, &str)] = &[
    ("CycleCountAccum", "`causeway stats` and `causeway trace` say where time goes"),
    ("FromSimDevice", "FromDump, or FromDevice with METHOD MEMORY, gives a graph packets without a network"),
    ("FromUserDevice", "FromHost with TYPE tun takes packets from programs"),
    ("PerfCountAccum", "perf(1) counts for the whole process, which is an ordinary program"),
    ("PerfCountInfo", "perf(1) counts for the whole process, which is an ordinary program"),
    ("PollDevice", "PollDevice and FromDevice both poll where that pays"),
    ("RTCycles", "`causeway stats` and `causeway trace` say where time goes"),
    ("ScheduleLinux", "nothing: the kernel schedules the workers, which sleep when there is nothing to do"),
    ("SetCycleCount", "`causeway stats` and `causeway trace` say where time goes"),
    ("SetPerfCount", "perf(1) counts for the whole process, which is an ordinary program"),
    ("ThreadMonitor", "`causeway stats` shows the workers"),
    (
        "ToHostSniffers",
        "FromDevice with SNIFFER true leaves the kernel and its sniffers every packet; ToDump writes a file",
    ),
    ("ToSimDevice", "ToDump, or ToDevice with METHOD MEMORY, takes packets without a network"),
    ("ToSimTrace", "ToDump writes packets to a file"),
    ("ToUserDevice", "ToHost with TYPE tun gives packets to programs"),
];
