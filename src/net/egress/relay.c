#include "net/egress/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	COPY = 64 * 1024,
	PIPE_BYTES = 1024 * 1024,
	TURN = 4 * 1024 * 1024, /* bytes for one, before others have their turn */
	SMALL = 16 * 1024, /* less at once is copied again */
};

static bool would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int pipe_take(struct relay *r, struct relay_pipes *p)
{
	if (p->n > 0) {
		p->n--;
		r->pipe[0] = p->ends[p->n][0];
		r->pipe[1] = p->ends[p->n][1];
		return 0;
	}
	if (pipe2(r->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		r->pipe[0] = r->pipe[1] = -1;
		return -1;
	}
	/* users without rights have a limit for all; the usual size serves, too */
	(void)fcntl(r->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

static void pipe_give(struct relay *r, struct relay_pipes *p)
{
	if (r->pipe[0] < 0)
		return;
	if (r->piped == 0 && p->n < RELAY_PIPES) {
		p->ends[p->n][0] = r->pipe[0];
		p->ends[p->n++][1] = r->pipe[1];
	} else {
		close(r->pipe[0]);
		close(r->pipe[1]);
	}
	r->pipe[0] = r->pipe[1] = -1;
}

void relay_init(struct relay *r, int from, int to, size_t held_max)
{
	*r = (struct relay){
		.from = from, .to = to, .pipe = { -1, -1 }, .held = BUF_INIT(held_max)
	};
}

void relay_fini(struct relay *r, struct relay_pipes *p)
{
	pipe_give(r, p);
	r->piped = 0;
	buf_fini(&r->held);
}

enum relay_state relay_flush(struct relay *r)
{
	while (r->held.n > 0) {
		ssize_t n = send(r->to, r->held.p, r->held.n, MSG_NOSIGNAL);

		if (n < 0 && would_block())
			return RELAY_WRITE;
		if (n < 0)
			return RELAY_BROKEN;
		r->bytes += (uint64_t)n;
		buf_drop(&r->held, (size_t)n);
		if (r->held.n == 0)
			buf_fini(&r->held);
	}
	return RELAY_READ;
}

static enum relay_state flush_pipe(struct relay *r)
{
	while (r->piped > 0) {
		ssize_t n = splice(r->pipe[0], NULL, r->to, NULL, r->piped,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && would_block())
			return RELAY_WRITE;
		if (n <= 0)
			return RELAY_BROKEN;
		r->bytes += (uint64_t)n;
		r->piped -= (size_t)n;
	}
	return RELAY_READ;
}

/* Bytes that were read, 0 at the end; what `to` doesn't take at once is held. */
static ssize_t copy_once(struct relay *r, size_t max)
{
	static char bytes[COPY];
	ssize_t n = recv(r->from, bytes, max < COPY ? max : COPY, 0), done;
	struct err e;

	if (n <= 0)
		return n;
	r->bulk = n == COPY;
	done = send(r->to, bytes, (size_t)n, MSG_NOSIGNAL);
	if (done < 0 && !would_block())
		return -1;
	done = done < 0 ? 0 : done;
	r->bytes += (uint64_t)done;
	if (done < n && buf_add(&r->held, bytes + done, (size_t)(n - done), &e) < 0) {
		errno = ENOMEM;
		return -1;
	}
	return n;
}

static ssize_t splice_once(struct relay *r, struct relay_pipes *p, size_t max)
{
	ssize_t n;

	if (r->pipe[0] < 0 && pipe_take(r, p) < 0) {
		r->bulk = false; /* out of descriptors: it goes on more slowly */
		return copy_once(r, max);
	}
	n = splice(r->from, NULL, r->pipe[1], NULL, max < PIPE_BYTES ? max : PIPE_BYTES,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0)
		r->piped += (size_t)n;
	if (n >= 0 && n < SMALL)
		r->bulk = false;
	return n;
}

enum relay_state relay_run(struct relay *r, struct relay_pipes *p, uint64_t *allowance)
{
	for (uint64_t turn = 0; !r->ended;) {
		enum relay_state state = relay_flush(r);
		uint64_t max = *allowance;
		ssize_t n;

		if (state == RELAY_READ)
			state = flush_pipe(r);
		if (state != RELAY_READ)
			return state;
		if (r->eof)
			break;
		if (!r->bulk)
			pipe_give(r, p);
		if (turn >= TURN)
			return RELAY_READ; /* the loop tells us again */
		if (max == 0)
			return RELAY_PAUSED;
		n = r->bulk ? splice_once(r, p, max) : copy_once(r, max);
		if (n < 0 && would_block()) {
			r->bulk = false;
			pipe_give(r, p);
			return RELAY_READ;
		}
		if (n < 0)
			return RELAY_BROKEN;
		r->eof = n == 0;
		turn += (uint64_t)n;
		*allowance -= (uint64_t)n;
		/* less than there was room for: nothing more is there, most likely */
		if (n > 0 && n < SMALL && r->held.n == 0 && r->piped == 0)
			return RELAY_READ;
	}
	if (!r->ended) {
		r->ended = true;
		pipe_give(r, p);
		if (!r->keep_open)
			shutdown(r->to, SHUT_WR);
	}
	return RELAY_ENDED;
}
