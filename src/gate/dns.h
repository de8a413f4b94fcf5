/*
 * dns - the name server of the cell: answers everything itself, at once, and asks nobody.
 *
 * A granted name has one A record, its synthetic address; all else about it is an empty answer. What is
 * not granted does not exist (NXDOMAIN with an extended error that says why), so nothing leaves in a
 * label and no client waits. Each refused question is reported; identical ones within ten seconds are
 * counted and reported as one.
 */
#pragma once

#include "base/buf.h"
#include "gate/timer.h"
#include "ipc/ipc.h"
#include "wire/dns.h"

#define AW_DNS_REPEATS 32 /* different questions counted at once */
#define AW_DNS_STREAMS 64 /* TCP clients at once */

struct aw_gate;
struct aw_dns_stream;

/* A refused question that was reported at @timer's start. */
struct aw_dns_repeat {
	struct aw_timer timer; /* started: in use */
	struct aw_gate *gate;
	struct aw_ipc_verdict verdict; /* verdict.repeats: since then */
};

struct aw_dns {
	struct aw_dns_repeat repeat[AW_DNS_REPEATS];
	size_t next_repeat;
	struct aw_dns_stream *streams;
	size_t stream_count;
};

void aw_dns_init(struct aw_gate *gate);

/* The UDP socket can be read. */
void aw_dns_datagrams(struct aw_gate *gate, int fd);

/* Take over a TCP client. */
void aw_dns_stream_open(struct aw_gate *gate, int take_fd);

/* The monitor caught up: streams that waited go on. */
void aw_dns_unpark(struct aw_gate *gate);

/*
 * Answer one message. Returns the bytes written into @out (@max >= 512), 0 for silence. Reports what
 * it refuses.
 */
size_t aw_dns_answer(struct aw_gate *gate, struct aw_str message, bool is_udp, uint8_t *out,
		     size_t max);
