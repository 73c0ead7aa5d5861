#include "http/message/ws_frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "http/message/sha1.h"

enum { TURN_MAX = 128 << 10 }; /* bytes read before others get their turn */

int ws_accept_key(struct str key, struct buf *to, struct err *e)
{
	unsigned char hash[SHA1_BYTES];
	char text[96];
	int n = snprintf(text, sizeof(text), "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
			 STR_ARG(key));

	sha1((struct str){ text, (size_t)n }, hash);
	return base64_encode(to, (struct str){ (const char *)hash, sizeof(hash) }, e);
}

static ssize_t take_input(struct ws_frames *f, uint8_t *to, size_t n)
{
	size_t left = f->input.n - f->input_taken;

	n = left < n ? left : n;
	memcpy(to, f->input.p + f->input_taken, n);
	f->input_taken += n;
	return (ssize_t)n;
}

/* wslay has taken all that was read. */
static ssize_t read_input(struct ws_frames *f)
{
	struct err e;
	ssize_t got;
	char *to;

	buf_drop(&f->input, f->input.n);
	f->input_taken = 0;
	to = buf_reserve(&f->input, WS_READ_MAX, &e);
	if (!to) {
		errno = ENOMEM;
		return -1;
	}
	got = f->io ? f->io->read(f->owner, to, WS_READ_MAX) : recv(f->fd, to, WS_READ_MAX, 0);
	if (got > 0)
		buf_advance(&f->input, (size_t)got);
	return got;
}

static ssize_t ws_frame_fail(wslay_event_context_ptr context, bool again)
{
	wslay_event_set_error(context, again ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static ssize_t on_recv(wslay_event_context_ptr context, uint8_t *to, size_t n, int flags,
		       void *data)
{
	struct ws_frames *f = data;
	ssize_t got;

	if (f->held || f->stopped)
		return ws_frame_fail(context, true);
	if (f->input_taken < f->input.n)
		return take_input(f, to, n);
	if (f->turn == 0)
		return ws_frame_fail(context, true);
	got = read_input(f);
	if (got <= 0)
		return ws_frame_fail(context, got < 0 && (errno == EAGAIN || errno == EINTR));
	f->turn -= (size_t)got < f->turn ? (size_t)got : f->turn;
	return take_input(f, to, n);
}

static ssize_t on_send(wslay_event_context_ptr context, const uint8_t *p, size_t n, int flags,
		       void *data)
{
	struct ws_frames *f = data;
	bool more = flags & WSLAY_MSG_MORE;
	ssize_t sent = f->io ? f->io->write(f->owner, p, n, more)
			     : send(f->fd, p, n, MSG_NOSIGNAL | (more ? MSG_MORE : 0));

	if (sent < 0)
		return ws_frame_fail(context, errno == EAGAIN || errno == EINTR);
	f->sent = true;
	return sent;
}

static int on_genmask(wslay_event_context_ptr context, uint8_t *to, size_t n, void *data)
{
	return getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

/* wslay stores each frame of a message by itself until the last one has come, with some 100 bytes
 * beside its content. So a limit in bytes alone would not be enough. */
static void on_frame(wslay_event_context_ptr context,
		     const struct wslay_event_on_frame_recv_start_arg *arg, void *data)
{
	struct ws_frames *f = data;

	if (arg->opcode >= WSLAY_CONNECTION_CLOSE)
		return;
	f->pieces = arg->opcode == WSLAY_CONTINUATION_FRAME ? f->pieces + 1 : 1;
	if (f->pieces <= WS_PIECES_MAX)
		return;
	wslay_event_shutdown_read(context);
	wslay_event_queue_close(context, WSLAY_CODE_MESSAGE_TOO_BIG, NULL, 0);
}

static void on_message(wslay_event_context_ptr context, const struct wslay_event_on_msg_recv_arg *m,
		       void *data)
{
	struct ws_frames *f = data;

	if (!f->stopped)
		f->on_message(f->owner, m->opcode,
			      (struct str){ (const char *)m->msg, m->msg_length });
}

int ws_frames_begin(struct ws_frames *f, bool is_client, size_t message_max)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_recv,
		.send_callback = on_send,
		.genmask_callback = on_genmask,
		.on_frame_recv_start_callback = on_frame,
		.on_msg_recv_callback = on_message,
	};

	if ((is_client ? wslay_event_context_client_init(&f->context, &callbacks, f)
		       : wslay_event_context_server_init(&f->context, &callbacks, f)) != 0)
		return -1;
	wslay_event_config_set_max_recv_msg_length(f->context, message_max);
	return 0;
}

void ws_frames_fini(struct ws_frames *f)
{
	if (f->context)
		wslay_event_context_free(f->context);
	buf_fini(&f->input);
}

/* Waits until the queue is empty, since wslay would send the close frame first and nothing after
 * it. */
static void say_goodbye(struct ws_frames *f)
{
	if (!f->close_code || wslay_event_get_queued_msg_count(f->context) > 0)
		return;
	wslay_event_queue_close(f->context, (uint16_t)f->close_code,
				(const uint8_t *)f->close_reason, strlen(f->close_reason));
	f->close_code = 0;
}

bool ws_frames_pump(struct ws_frames *f)
{
	bool ok;

	f->turn = TURN_MAX;
	f->resumed = false;
	ok = f->held || wslay_event_recv(f->context) == 0;
	if (f->input_taken == f->input.n) { /* one that is idle keeps no memory for it */
		buf_fini(&f->input);
		f->input_taken = 0;
	}
	if (f->stopped)
		return true;
	ok = wslay_event_send(f->context) == 0 && ok;
	say_goodbye(f);
	return ok;
}

bool ws_frames_want_write(const struct ws_frames *f)
{
	return f->context && (wslay_event_want_write(f->context) || f->resumed);
}

bool ws_frames_say(struct ws_frames *f, uint8_t opcode, struct str message)
{
	struct wslay_event_msg m = { .opcode = opcode,
				     .msg = (const uint8_t *)message.p,
				     .msg_length = message.n };

	return wslay_event_queue_msg(f->context, &m) != WSLAY_ERR_NOMEM;
}

void ws_frames_hold(struct ws_frames *f, bool hold)
{
	f->resumed = !hold;
	f->held = hold;
}

void ws_frames_goodbye(struct ws_frames *f, unsigned code, struct str reason)
{
	f->close_code = code;
	snprintf(f->close_reason, sizeof(f->close_reason), "%.*s", STR_ARG(reason));
	if (f->context)
		say_goodbye(f);
}

size_t ws_frames_waiting(const struct ws_frames *f)
{
	return f->context ? wslay_event_get_queued_msg_length(f->context) : 0;
}

size_t ws_frames_queued(const struct ws_frames *f)
{
	return f->context ? wslay_event_get_queued_msg_count(f->context) : 0;
}

unsigned ws_frames_status(const struct ws_frames *f)
{
	unsigned code = f->context ? wslay_event_get_status_code_received(f->context) : 0;

	return code ? code : WS_NO_CLOSE_FRAME;
}
