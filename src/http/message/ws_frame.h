#pragma once
/*
 * The frames of one WebSocket (RFC 6455) by wslay, over a descriptor that does not block: what both
 * roles share. The owner polls for ws_frames_events() and calls ws_frames_pump().
 */
#include <stdbool.h>
#include <stdint.h>
#include <wslay/wslay.h>

#include "base/buf.h"

enum {
	WS_PIECES_MAX = 1024, /* frames that one message may come in */
	WS_QUEUED_MAX = 4096, /* frames; what a flood of pings can make us keep */
	WS_NO_CLOSE_FRAME = 1006,
};

struct ws_frames {
	wslay_event_context_ptr context; /* NULL: not begun */
	int fd; /* the owner's */
	/* A whole message, or a control frame: WSLAY_TEXT_FRAME … */
	void (*on_message)(void *owner, uint8_t opcode, struct str message);
	void *owner;
	struct buf early; /* what was read before, and where the frames in it begin */
	size_t early_read;
	size_t turn; /* bytes that may still be read in this one */
	unsigned pieces; /* of the message that is coming */
	bool held; /* reads no further */
	bool resumed; /* what was read before that waits to be looked at */
	bool stopped; /* nothing is read or sent any more */
	bool sent; /* something was; the owner clears it */
	/* of the goodbye that waits for what is to be sent before it; 0: none */
	unsigned close_code;
	char close_reason[124]; /* RFC 6455 allows 123 bytes */
};

/* What the server answers to a key (section 4.2.2), appended. */
int ws_accept_key(struct str key, struct buf *to, struct err *e) MUST_USE;

/* message_max: bytes; a longer one ends it. Begins without fd and early, to be set before the first
 * pump. -1: out of memory. */
int ws_frames_begin(struct ws_frames *f, bool is_client, size_t message_max) MUST_USE;
void ws_frames_fini(struct ws_frames *f);

/* Reads for a turn, then sends what the peer takes. False: the peer went away, or broke the
 * protocol. */
bool ws_frames_pump(struct ws_frames *f);
bool ws_frames_want_write(const struct ws_frames *f);

/* Copies the message. False without memory. */
bool ws_frames_say(struct ws_frames *f, uint8_t opcode, struct str message);
void ws_frames_hold(struct ws_frames *f, bool hold);
/* Says goodbye behind what waits. */
void ws_frames_goodbye(struct ws_frames *f, unsigned code, struct str reason);

size_t ws_frames_waiting(const struct ws_frames *f); /* bytes */
size_t ws_frames_queued(const struct ws_frames *f); /* frames */
/* Of the peer's close frame, else WS_NO_CLOSE_FRAME. */
unsigned ws_frames_status(const struct ws_frames *f);
