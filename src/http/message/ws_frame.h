#pragma once
/*
 * The frames of one WebSocket (RFC 6455) by wslay, over a non-blocking descriptor or what the owner
 * puts above it. Shared by server and client. The owner polls the descriptor and calls
 * ws_frames_pump().
 */
#include <stdbool.h>
#include <stdint.h>
#include <wslay/wslay.h>

#include "base/buf.h"

enum {
	WS_PIECES_MAX = 1024, /* frames of one message */
	WS_QUEUED_MAX = 4096, /* frames in the queue, which a flood of pings fills with pongs */
	WS_NO_CLOSE_FRAME = 1006,
	WS_READ_MAX = 16 << 10, /* bytes of one read: a record of TLS */
};

/* Carries the bytes, as recv(2) and send(2) do, with errno. */
struct ws_io {
	/* n is WS_READ_MAX, so that nothing has to stay behind where no poll would show it. */
	ssize_t (*read)(void *owner, void *to, size_t n);
	/* more: the rest of a frame follows at once. After EAGAIN the same bytes come again. */
	ssize_t (*write)(void *owner, const void *p, size_t n, bool more);
};

struct ws_frames {
	wslay_event_context_ptr context; /* NULL: not begun */
	int fd; /* owned by the owner */
	/* Called with a whole message or a control frame; opcode: WSLAY_TEXT_FRAME … */
	void (*on_message)(void *owner, uint8_t opcode, struct str message);
	void *owner;
	const struct ws_io *io; /* NULL: fd itself */
	struct buf input; /* bytes that were read, and how many of them wslay has */
	size_t input_taken;
	size_t turn; /* bytes that may still be read in this turn */
	unsigned pieces; /* frames so far of the message being received */
	bool held; /* reading is stopped */
	bool resumed; /* bytes that were read before wait to be processed */
	bool stopped; /* nothing is read or sent any more */
	bool sent; /* something was sent; the owner clears it */
	/* code of the close frame that waits for the queue to drain; 0: none */
	unsigned close_code;
	char close_reason[124]; /* RFC 6455 allows 123 bytes */
};

/* Appends the server's answer to a key (section 4.2.2). */
int ws_accept_key(struct str key, struct buf *to, struct err *e) MUST_USE;

/* message_max: bytes; a longer message ends it. fd and input must be set before the first pump. -1:
 * out of memory. */
int ws_frames_begin(struct ws_frames *f, bool is_client, size_t message_max) MUST_USE;
void ws_frames_fini(struct ws_frames *f);

/* Reads for a turn, then sends what the peer takes. False: the peer went away, or violated the
 * protocol. */
bool ws_frames_pump(struct ws_frames *f);
bool ws_frames_want_write(const struct ws_frames *f);

/* Copies the message into the queue. False without memory. */
bool ws_frames_say(struct ws_frames *f, uint8_t opcode, struct str message);
void ws_frames_hold(struct ws_frames *f, bool hold);
/* Sends a close frame after the queued messages. */
void ws_frames_goodbye(struct ws_frames *f, unsigned code, struct str reason);

size_t ws_frames_waiting(const struct ws_frames *f); /* bytes */
size_t ws_frames_queued(const struct ws_frames *f); /* frames */
/* The status of the peer's close frame, else WS_NO_CLOSE_FRAME. */
unsigned ws_frames_status(const struct ws_frames *f);
