//! The numbers of the kernel's netlink interface that this crate uses, under the names of the kernel's own headers.
//!
//! They are part of the kernel's stable interface to programs (include/uapi/linux: netlink.h, rtnetlink.h, if_link.h,
//! if_addr.h, neighbour.h, netconf.h, nexthop.h, fib_rules.h, pkt_sched.h, pkt_cls.h, xfrm.h, netfilter/nf_tables.h, netfilter/nfnetlink_hook.h,
//! netfilter_ipv4/ip_tables.h, netfilter_ipv6/ip6_tables.h) and do not change.
//! They stand here because no single crate has all of them for every libc.

pub const NLMSG_ERROR: u16 = 2;
pub const NLMSG_DONE: u16 = 3;

pub const NLM_F_REQUEST: u16 = 0x1;
pub const NLM_F_ACK: u16 = 0x4;
pub const NLM_F_DUMP_INTR: u16 = 0x10;
pub const NLM_F_DUMP: u16 = 0x300;
pub const NLM_F_REPLACE: u16 = 0x100;
pub const NLM_F_EXCL: u16 = 0x200;
pub const NLM_F_CREATE: u16 = 0x400;
pub const NLM_F_APPEND: u16 = 0x800;

pub const RTM_NEWLINK: u16 = 16;
pub const RTM_DELLINK: u16 = 17;
pub const RTM_GETLINK: u16 = 18;
pub const RTM_NEWADDR: u16 = 20;
pub const RTM_DELADDR: u16 = 21;
pub const RTM_GETADDR: u16 = 22;
pub const RTM_NEWROUTE: u16 = 24;
pub const RTM_DELROUTE: u16 = 25;
pub const RTM_GETROUTE: u16 = 26;
pub const RTM_NEWNEIGH: u16 = 28;
pub const RTM_DELNEIGH: u16 = 29;
pub const RTM_GETNEIGH: u16 = 30;
pub const RTM_NEWRULE: u16 = 32;
pub const RTM_DELRULE: u16 = 33;
pub const RTM_GETRULE: u16 = 34;
pub const RTM_NEWQDISC: u16 = 36;
pub const RTM_DELQDISC: u16 = 37;
pub const RTM_GETQDISC: u16 = 38;
pub const RTM_NEWNETCONF: u16 = 80;
pub const RTM_DELNETCONF: u16 = 81;
pub const RTM_GETNETCONF: u16 = 82;
pub const RTM_NEWNEXTHOP: u16 = 104;
pub const RTM_DELNEXTHOP: u16 = 105;
pub const RTM_GETNEXTHOP: u16 = 106;

pub const RTNLGRP_LINK: u32 = 1;
pub const RTNLGRP_NEIGH: u32 = 3;
pub const RTNLGRP_TC: u32 = 4;
pub const RTNLGRP_IPV4_IFADDR: u32 = 5;
pub const RTNLGRP_IPV4_ROUTE: u32 = 7;
pub const RTNLGRP_IPV4_RULE: u32 = 8;
pub const RTNLGRP_IPV6_IFADDR: u32 = 9;
pub const RTNLGRP_IPV6_ROUTE: u32 = 11;
pub const RTNLGRP_IPV6_RULE: u32 = 19;
pub const RTNLGRP_IPV4_NETCONF: u32 = 24;
pub const RTNLGRP_IPV6_NETCONF: u32 = 25;
pub const RTNLGRP_NEXTHOP: u32 = 32;

pub const AF_UNSPEC: u8 = 0;
pub const AF_INET: u8 = 2;
pub const AF_INET6: u8 = 10;

pub const ARPHRD_ETHER: u16 = 1;
pub const ARPHRD_PPP: u16 = 512;
pub const ARPHRD_RAWIP: u16 = 519;
pub const ARPHRD_NONE: u16 = 0xfffe;
pub const IFF_UP: u32 = 0x1;
pub const IFF_LOOPBACK: u32 = 0x8;
pub const IFF_NOARP: u32 = 0x80;
pub const IFF_LOWER_UP: u32 = 0x1_0000;

pub const IFLA_ADDRESS: u16 = 1;
pub const IFLA_IFNAME: u16 = 3;
pub const IFLA_MTU: u16 = 4;
pub const IFLA_LINK: u16 = 5;
pub const IFLA_MASTER: u16 = 10;
pub const IFLA_LINKINFO: u16 = 18;
pub const IFLA_AF_SPEC: u16 = 26;
pub const IFLA_NUM_TX_QUEUES: u16 = 31;
pub const IFLA_NUM_RX_QUEUES: u16 = 32;
pub const IFLA_LINK_NETNSID: u16 = 37;
pub const IFLA_XDP: u16 = 43;
pub const IFLA_PROP_LIST: u16 = 52;
pub const IFLA_ALT_IFNAME: u16 = 53;
pub const IFLA_PARENT_DEV_NAME: u16 = 56;
pub const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;
pub const IFLA_INFO_KIND: u16 = 1;
pub const IFLA_INFO_DATA: u16 = 2;
pub const IFLA_INFO_SLAVE_KIND: u16 = 4;
pub const IFLA_MACVLAN_MODE: u16 = 1;
pub const MACVLAN_MODE_PASSTHRU: u32 = 8;
pub const MACVLAN_MODE_SOURCE: u32 = 16;
pub const IFLA_XDP_PROG_ID: u16 = 4;
pub const IFLA_INET6_CONF: u16 = 2;
/// Index of the MTU in the array that `IFLA_INET6_CONF` carries.
pub const DEVCONF_MTU6: usize = 2;

pub const IFA_ADDRESS: u16 = 1;
pub const IFA_LOCAL: u16 = 2;

pub const NDA_DST: u16 = 1;
pub const NDA_LLADDR: u16 = 2;
pub const NDA_FLAGS_EXT: u16 = 15;
pub const NUD_REACHABLE: u16 = 0x02;
pub const NUD_STALE: u16 = 0x04;
pub const NUD_DELAY: u16 = 0x08;
pub const NUD_PROBE: u16 = 0x10;
pub const NUD_NOARP: u16 = 0x40;
pub const NUD_PERMANENT: u16 = 0x80;
pub const NTF_USE: u8 = 0x01;
pub const NTF_PROXY: u8 = 0x08;
pub const NTF_EXT_LEARNED: u8 = 0x10;
pub const NTF_EXT_MANAGED: u32 = 0x1;

pub const RTA_DST: u16 = 1;
pub const RTA_SRC: u16 = 2;
pub const RTA_OIF: u16 = 4;
pub const RTA_GATEWAY: u16 = 5;
pub const RTA_PRIORITY: u16 = 6;
pub const RTA_PREFSRC: u16 = 7;
pub const RTA_METRICS: u16 = 8;
pub const RTA_MULTIPATH: u16 = 9;
pub const RTA_FLOW: u16 = 11;
pub const RTA_CACHEINFO: u16 = 12;
pub const RTA_TABLE: u16 = 15;
pub const RTA_VIA: u16 = 18;
pub const RTA_PREF: u16 = 20;
pub const RTA_ENCAP_TYPE: u16 = 21;
pub const RTA_ENCAP: u16 = 22;
pub const RTA_EXPIRES: u16 = 23;
pub const RTA_NH_ID: u16 = 30;
pub const RTNH_F_DEAD: u32 = 1;
pub const RTNH_F_ONLINK: u32 = 4;
pub const RTAX_MTU: u16 = 2;
pub const RTAX_FEATURES: u16 = 12;
pub const RTAX_FASTOPEN_NO_COOKIE: u16 = 17;
pub const RTAX_FEATURE_ECN: u32 = 1;
pub const RTAX_FEATURE_SACK: u32 = 2;
pub const RTAX_FEATURE_TIMESTAMP: u32 = 4;
pub const RTAX_FEATURE_TCP_USEC_TS: u32 = 16;
pub const RTM_F_CLONED: u32 = 0x200;

pub const RTN_UNICAST: u8 = 1;
pub const RTN_LOCAL: u8 = 2;
pub const RTN_BROADCAST: u8 = 3;
pub const RTN_ANYCAST: u8 = 4;
pub const RTN_MULTICAST: u8 = 5;
pub const RTN_BLACKHOLE: u8 = 6;
pub const RTN_UNREACHABLE: u8 = 7;
pub const RTN_PROHIBIT: u8 = 8;
pub const RTN_THROW: u8 = 9;

pub const RTPROT_REDIRECT: u8 = 1;
pub const RTPROT_KERNEL: u8 = 2;
pub const RTPROT_RA: u8 = 9;
pub const RT_TABLE_DEFAULT: u32 = 253;
pub const RT_TABLE_MAIN: u32 = 254;
pub const RT_TABLE_LOCAL: u32 = 255;

pub const NHA_ID: u16 = 1;
pub const NHA_GROUP: u16 = 2;
pub const NHA_GROUP_TYPE: u16 = 3;
pub const NHA_BLACKHOLE: u16 = 4;
pub const NHA_OIF: u16 = 5;
pub const NHA_GATEWAY: u16 = 6;
pub const NHA_ENCAP_TYPE: u16 = 7;
pub const NHA_ENCAP: u16 = 8;
pub const NHA_FDB: u16 = 11;
pub const NHA_RES_GROUP: u16 = 12;
pub const NHA_OP_FLAGS: u16 = 14;
pub const NHA_OP_FLAG_RESP_GRP_RESVD_0: u32 = 1 << 31;
pub const NHA_HW_STATS_ENABLE: u16 = 16;

pub const FRA_DST: u16 = 1;
pub const FRA_SRC: u16 = 2;
pub const FRA_IIFNAME: u16 = 3;
pub const FRA_PRIORITY: u16 = 6;
pub const FRA_FWMARK: u16 = 10;
pub const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
pub const FRA_TABLE: u16 = 15;
pub const FRA_OIFNAME: u16 = 17;
pub const FRA_L3MDEV: u16 = 19;
pub const FRA_PROTOCOL: u16 = 21;
pub const FRA_DSCP_MASK: u16 = 30;
pub const FR_ACT_TO_TBL: u8 = 1;
pub const FR_ACT_NOP: u8 = 3;
pub const FIB_RULE_PERMANENT: u32 = 1;
pub const FIB_RULE_INVERT: u32 = 2;
pub const FIB_RULE_UNRESOLVED: u32 = 4;
pub const FIB_RULE_IIF_DETACHED: u32 = 8;
pub const FIB_RULE_OIF_DETACHED: u32 = 16;
pub const FIB_RULE_FIND_SADDR: u32 = 0x10000;

pub const TCA_KIND: u16 = 1;
/// Where `clsact` and `ingress` hang.
pub const TC_H_ROOT: u32 = 0xffff_ffff;
pub const TC_H_CLSACT: u32 = 0xffff_fff1;

pub const NETCONFA_IFINDEX: u16 = 1;
pub const NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN: u16 = 6;
pub const NETCONFA_IFINDEX_ALL: u32 = u32::MAX;
pub const NETCONFA_IFINDEX_DEFAULT: u32 = u32::MAX - 1;

/// `EOPNOTSUPP`, `EINVAL`, `EPROTONOSUPPORT`: what the kernel says of questions that it was built without.
pub const EOPNOTSUPP: i32 = 95;
pub const EINVAL: i32 = 22;
pub const EPROTONOSUPPORT: i32 = 93;

pub const NFNLGRP_NFTABLES: u32 = 7;
pub const NFNL_SUBSYS_NFTABLES: u16 = 10;
pub const NFNL_SUBSYS_HOOK: u16 = 12;
pub const NFPROTO_INET: u8 = 1;
pub const NFPROTO_NETDEV: u8 = 5;
pub const NF_INET_PRE_ROUTING: u32 = 0;
pub const NF_INET_FORWARD: u32 = 2;
pub const NF_INET_POST_ROUTING: u32 = 4;
pub const NF_INET_INGRESS: u32 = 5;
pub const NF_NETDEV_INGRESS: u32 = 0;
pub const NF_NETDEV_EGRESS: u32 = 1;
pub const NF_DROP: u32 = 0;

pub const NFT_MSG_NEWTABLE: u16 = 0;
pub const NFT_MSG_DELTABLE: u16 = 2;
pub const NFT_MSG_NEWCHAIN: u16 = 3;
pub const NFT_MSG_GETCHAIN: u16 = 4;
pub const NFT_MSG_DELCHAIN: u16 = 5;
pub const NFT_MSG_NEWRULE: u16 = 6;
pub const NFT_MSG_DELRULE: u16 = 8;
pub const NFT_MSG_NEWFLOWTABLE: u16 = 22;
pub const NFT_MSG_GETFLOWTABLE: u16 = 23;
pub const NFT_MSG_DELFLOWTABLE: u16 = 24;
pub const NFTA_CHAIN_TABLE: u16 = 1;
pub const NFTA_CHAIN_NAME: u16 = 3;
pub const NFTA_CHAIN_HOOK: u16 = 4;
pub const NFTA_CHAIN_POLICY: u16 = 5;
pub const NFTA_CHAIN_USE: u16 = 6;
pub const NFTA_HOOK_HOOKNUM: u16 = 1;
pub const NFTA_HOOK_DEV: u16 = 3;
pub const NFTA_HOOK_DEVS: u16 = 4;
pub const NFTA_DEVICE_NAME: u16 = 1;
pub const NFTA_DEVICE_PREFIX: u16 = 2;
pub const NFTA_RULE_TABLE: u16 = 1;
pub const NFTA_RULE_CHAIN: u16 = 2;
pub const NFTA_FLOWTABLE_TABLE: u16 = 1;
pub const NFTA_FLOWTABLE_NAME: u16 = 2;
pub const NFTA_FLOWTABLE_HOOK: u16 = 3;
pub const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;

pub const NFNL_SUBSYS_CTNETLINK: u16 = 1;
pub const IPCTNL_MSG_CT_GET: u16 = 1;
pub const CTA_STATUS: u16 = 3;
/// Linux 5.17 and later.
pub const CTA_STATUS_MASK: u16 = 26;
pub const IPS_SRC_NAT: u32 = 1 << 4;
pub const IPS_DST_NAT: u32 = 1 << 5;
pub const NFTA_CHAIN_TYPE: u16 = 7;

pub const NFNL_MSG_HOOK_GET: u16 = 0;
pub const NFNLA_HOOK_HOOKNUM: u16 = 1;
pub const NFNLA_HOOK_DEV: u16 = 3;
pub const NFNLA_HOOK_FUNCTION_NAME: u16 = 4;

pub const XFRMNLGRP_POLICY: u32 = 4;
pub const XFRM_MSG_GETSPDINFO: u16 = 0x25;
pub const XFRM_MSG_GETDEFAULT: u16 = 0x28;
pub const XFRMA_SPD_INFO: u16 = 1;
pub const XFRM_USERPOLICY_BLOCK: u8 = 1;

pub const SOL_IP: i32 = 0;
pub const SOL_IPV6: i32 = 41;
/// The same numbers for IPv6 (`IP6T_SO_*`).
pub const IPT_SO_GET_INFO: i32 = 64;
pub const IPT_SO_GET_ENTRIES: i32 = 65;
