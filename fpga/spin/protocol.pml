/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The REQ/RES/BURST protocol between input cards and output cards, two classes.
 *
 * Exhaustive over all orders of events: arrivals, the two message channels (a stand-alone REQ on DMA channel iii may
 * overtake a burst on channel iv), grants, bursts, and the draining of output FIFOs. Packets are units; choices that
 * the hardware makes round robin are left open, which allows more than the hardware does.
 *
 * Checked: an output FIFO never overflows; a peer never has two requests at an output; one grant is outstanding at
 * most; the high class is served first; and when nothing can happen any more, every accepted packet was delivered.
 *
 * -DLITERAL follows the paper's words instead of the token rule: a packet that arrives at empty FIFOs makes the
 * output active at once. It must fail: the request overtakes a burst whose trailing REQ is null and is erased by it.
 */

#ifndef FIRST
#define FIRST 2     /* arrivals from each input for the first output */
#endif
#ifndef SECOND
#define SECOND 1    /* and for the second */
#endif
#define IN_CAP 2    /* packets in an input FIFO */
#define OUT_CAP 2   /* packets in an output FIFO */
#define NONE 255
#define HIGH(f) q[2 * (f) + 1]
#define LOW(f) q[2 * (f)]
#define MIN(a, b) ((a) < (b) -> (a) : (b))

/* Pair f = 2 * input + output. */
byte q[8];
byte budget[4];
bit token[4] = 1;    /* the output knows of nothing: a REQ may be sent */
bit null_sent[4];    /* the burst that carries a null REQ has not left yet */
byte accepted[2], delivered[2];  /* by output */

chan req[4] = [1] of { byte, byte };
chan res[4] = [1] of { byte, byte };
chan burst[4] = [1] of { byte, byte, byte, byte };

inline arrive(f, class) {
  atomic {
    budget[f] > 0 ->
    budget[f]--;
    if
    :: q[2 * (f) + class] < IN_CAP ->
#ifdef LITERAL
      if
      :: HIGH(f) + LOW(f) == 0 -> token[f] = 1
      :: else
      fi;
#endif
      q[2 * (f) + class]++;
      accepted[(f) % 2]++
    :: else /* dropped at the input, and counted there */
    fi
  }
}

inline request(f) {
  atomic {
    !waiting && token[f] && HIGH(f) + LOW(f) > 0 && nfull(req[f]) ->
    token[f] = 0;
    waiting = 1;
    waiting_for = f;
    req[f] ! HIGH(f), LOW(f)
  }
}

inline answer(f) {
  atomic {
    nempty(res[f]) && nfull(burst[f]) ->
    res[f] ? h, l;
    if
    :: waiting && waiting_for == f -> waiting = 0
    :: else
    fi;
    h = MIN(h, HIGH(f));
    l = MIN(l, LOW(f));
    HIGH(f) = HIGH(f) - h;
    LOW(f) = LOW(f) - l;
    burst[f] ! h, l, HIGH(f), LOW(f);
#ifndef LITERAL
    null_sent[f] = (HIGH(f) + LOW(f) == 0);
#endif
    h = 0;
    l = 0
  }
}

inline take_back(f) {
  atomic { null_sent[f] && empty(burst[f]) -> null_sent[f] = 0; token[f] = 1 }
}

proctype Input(byte i) {
  bit waiting;
  byte waiting_for, h, l;
end:
  do
  :: arrive(2 * i, 0)
  :: arrive(2 * i, 1)
  :: arrive(2 * i + 1, 0)
  :: arrive(2 * i + 1, 1)
  :: request(2 * i)
  :: request(2 * i + 1)
  :: answer(2 * i)
  :: answer(2 * i + 1)
  :: take_back(2 * i)
  :: take_back(2 * i + 1)
  od
}

inline receive_request(f) {
  atomic {
    req[f] ? h, l ->
#ifndef LITERAL
    assert(asked_high[(f) / 2] + asked_low[(f) / 2] == 0);
#endif
    asked_high[(f) / 2] = h;
    asked_low[(f) / 2] = l;
    h = 0;
    l = 0
  }
}

inline grant(f) {
  atomic {
    serving == NONE && asked_high[(f) / 2] + asked_low[(f) / 2] > 0 ->
    serving = f;
    h = MIN(asked_high[(f) / 2], OUT_CAP - occupied);
    l = MIN(asked_low[(f) / 2], OUT_CAP - occupied - h);
    assert(l == 0 || h == asked_high[(f) / 2]);
    asked_high[(f) / 2] = 0;
    asked_low[(f) / 2] = 0;
    res[f] ! h, l;
    h = 0;
    l = 0
  }
}

inline receive_burst(f) {
  atomic {
    burst[f] ? a, b, h, l ->
    assert(serving == f);
    assert(occupied + a + b <= OUT_CAP);
    occupied = occupied + a + b;
    serving = NONE;
    /* The trailing REQ tells the state; a null one erases. */
    asked_high[(f) / 2] = h;
    asked_low[(f) / 2] = l;
    a = 0;
    b = 0;
    h = 0;
    l = 0
  }
}

proctype Output(byte o) {
  byte asked_high[2], asked_low[2];
  byte serving = NONE;
  byte occupied, a, b, h, l;
end:
  do
  :: receive_request(o)
  :: receive_request(2 + o)
  :: grant(o)
  :: grant(2 + o)
  :: receive_burst(o)
  :: receive_burst(2 + o)
  :: atomic { occupied > 0 -> occupied--; delivered[o]++ }
  od
}

init {
  atomic {
    budget[0] = FIRST;
    budget[1] = SECOND;
    budget[2] = FIRST;
    budget[3] = SECOND;
    run Input(0);
    run Input(1);
    run Output(0);
    run Output(1)
  }
  /* Nothing can happen any more: nothing may be left. */
  timeout ->
  assert(accepted[0] == delivered[0]);
  assert(accepted[1] == delivered[1])
}
