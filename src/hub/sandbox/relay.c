/*
 * Relays a connection to a forwarded port to its connection inside. Each side is read only after
 * its last bytes were written to the other side, so a slow reader slows its peer, and a relay
 * buffers at most one piece per direction. The end of one side's bytes is passed on by itself; the
 * relay ends after both ends, or on an error. A peer that has ended may be gone, which a silent
 * server would never notice: so the other side has a time limit from then on.
 */
#include <stdlib.h>

#include "hub/sandbox/internal.h"

enum {
	PIECE = 16 << 10,
	ALIVE_S = 60, /* before a silent peer is probed */
	HALF_MS = 300000, /* of silence of one side after the other's end */
};

struct side {
	struct relay *relay;
	uv_tcp_t tcp;
	bool open; /* tcp is a handle */
	uv_write_t write; /* bytes of this side, on the way to the other */
	uv_shutdown_t shutdown; /* likewise */
	bool ended; /* it has ended, and the other side was told */
	char piece[PIECE];
};

struct relay {
	struct relay *next;
	struct forward *forward; /* NULL once it ends */
	struct hub_sandbox *hs; /* of the port */
	struct hub_sandbox_port port;
	struct sandbox *sandbox; /* a reference */
	struct dial *dial; /* NULL: it is done */
	struct side client, guest;
	uv_timer_t half; /* since one side has ended */
	unsigned handles;
};

/* ---- the end ------------------------------------------------------------------------------- */

static void let_go(struct relay *r)
{
	if (--r->handles == 0)
		free(r);
}

static void on_side_closed(uv_handle_t *h)
{
	let_go(((struct side *)h->data)->relay);
}

static void on_half_closed(uv_handle_t *h)
{
	let_go(h->data);
}

static void close_side(struct side *s)
{
	if (s->open)
		uv_close((uv_handle_t *)&s->tcp, on_side_closed);
}

static void relay_end(struct relay *r)
{
	struct relay **at;

	if (!r->forward)
		return;
	at = &r->forward->relays;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->forward->n_relays--;
	r->forward = NULL;
	if (r->dial)
		sandbox_dial_cancel(take_ptr(r->dial));
	sandbox_unref(r->sandbox);
	hub_sandbox_port_give(&r->port);
	r->hs = NULL;
	close_side(&r->guest);
	close_side(&r->client);
	uv_close((uv_handle_t *)&r->half, on_half_closed); /* the last to go takes r along */
}

void relays_end(struct forward *f)
{
	while (f->relays)
		relay_end(f->relays);
}

/* ---- bytes --------------------------------------------------------------------------------- */

static struct side *other(struct side *s)
{
	return s == &s->relay->client ? &s->relay->guest : &s->relay->client;
}

static void on_room(uv_handle_t *h, size_t wanted, uv_buf_t *ret)
{
	struct side *s = h->data;

	*ret = uv_buf_init(s->piece, sizeof(s->piece));
}

static void relay_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece);

static void on_written(uv_write_t *w, int status)
{
	struct side *s = w->data;

	if (status < 0 || uv_read_start((uv_stream_t *)&s->tcp, on_room, relay_on_read) < 0)
		relay_end(s->relay);
}

static void on_half(uv_timer_t *timer)
{
	relay_end(timer->data);
}

static void on_shut(uv_shutdown_t *w, int status)
{
	struct side *s = w->data;

	s->ended = true;
	if (status < 0 || other(s)->ended)
		relay_end(s->relay);
	else
		uv_timer_start(&s->relay->half, on_half, HALF_MS, 0);
}

static void relay_count(struct side *s, uint64_t n)
{
	bool in = s == &s->relay->client;

	sandbox_carried(s->relay->sandbox, in ? n : 0, in ? 0 : n);
}

static void relay_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
	struct side *s = stream->data;
	uv_stream_t *to = (uv_stream_t *)&other(s)->tcp;
	uv_buf_t bytes;
	int rc;

	if (n == 0)
		return;
	uv_read_stop(stream);
	if (n > 0) {
		relay_count(s, (uint64_t)n);
		if (other(s)->ended)
			uv_timer_start(&s->relay->half, on_half, HALF_MS, 0);
		bytes = uv_buf_init(s->piece, (unsigned)n);
		rc = uv_write(&s->write, to, &bytes, 1, on_written);
	} else {
		rc = n == UV_EOF ? uv_shutdown(&s->shutdown, to, on_shut) : -1;
	}
	if (rc < 0)
		relay_end(s->relay);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static int open_side(struct relay *r, struct side *s)
{
	s->relay = r;
	s->tcp.data = s->write.data = s->shutdown.data = s;
	if (uv_tcp_init(r->hs->all->loop, &s->tcp) < 0)
		return -1;
	s->tcp.data = s;
	s->open = true;
	r->handles++;
	return 0;
}

static void on_dialed(void *arg, int fd, const struct err *err)
{
	struct relay *r = arg;

	r->dial = NULL;
	if (err || open_side(r, &r->guest) < 0 || uv_tcp_open(&r->guest.tcp, fd) < 0) {
		if (fd >= 0)
			close(fd);
		relay_end(r);
		return;
	}
	uv_tcp_nodelay(&r->guest.tcp, 1);
	if (uv_read_start((uv_stream_t *)&r->client.tcp, on_room, relay_on_read) < 0 ||
	    uv_read_start((uv_stream_t *)&r->guest.tcp, on_room, relay_on_read) < 0)
		relay_end(r);
}

static void on_turned_away(uv_handle_t *h)
{
	free(h);
}

/* A client that is not accepted would stay in the backlog and wake us again. */
static void turn_away(struct forward *f)
{
	uv_tcp_t *client = malloc(sizeof(*client));

	if (!client || uv_tcp_init(f->hs->all->loop, client) < 0) {
		free(client);
		return;
	}
	if (uv_accept((uv_stream_t *)&f->listener, (uv_stream_t *)client) == 0)
		uv_tcp_close_reset(client, on_turned_away);
	else
		uv_close((uv_handle_t *)client, on_turned_away);
}

static void on_life_end(void *arg)
{
	relay_end(arg);
}

static struct relay *admit(struct forward *f, struct sandbox *sb)
{
	struct relay *r = calloc(1, sizeof(*r));
	struct err e;

	if (!r)
		return NULL;
	r->hs = f->hs;
	r->port = (struct hub_sandbox_port){ .on_end = on_life_end, .arg = r };
	r->half.data = r;
	if (hub_sandbox_port_take(r->hs, &r->port, &e) < 0 || open_side(r, &r->client) < 0) {
		hub_sandbox_port_give(&r->port);
		free(r);
		return NULL;
	}
	uv_timer_init(r->hs->all->loop, &r->half); /* which never fails */
	r->handles++;
	r->forward = f;
	r->sandbox = sandbox_ref(sb);
	r->next = f->relays;
	f->relays = r;
	f->n_relays++;
	f->relays_total++;
	return r;
}

void relay_start(struct forward *f)
{
	struct err e;
	struct sandbox *sb = hub_sandbox_sandbox(f->hs, &e);
	struct relay *r = sb ? admit(f, sb) : NULL;

	if (!r) {
		turn_away(f);
		return;
	}
	if (uv_accept((uv_stream_t *)&f->listener, (uv_stream_t *)&r->client.tcp) < 0) {
		relay_end(r);
		return;
	}
	uv_tcp_nodelay(&r->client.tcp, 1);
	uv_tcp_keepalive(&r->client.tcp, 1, ALIVE_S);
	r->dial = sandbox_dial_start(sb, f->guest_port, on_dialed, r);
}
