#include <unistd.h>

#include "agents/store/internal.h"

enum { PIECE = 256 << 10 };

static const char line_begin[] = "{\"seq\":";

int events_scan_init(struct events_scan *s, int fd, uint64_t at, uint64_t end, uint64_t last,
		     struct err *e)
{
	*s = (struct events_scan){ .fd = fd, .at = at, .end = end, .last = last };
	s->cap = end - at < PIECE ? (size_t)(end - at) + 1 : PIECE;
	s->room = malloc(s->cap);
	return s->room ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

void events_scan_fini(struct events_scan *s)
{
	free(s->room);
	s->room = NULL;
}

uint64_t events_seq_of(struct str line)
{
	uint64_t seq = 0;
	size_t i = sizeof(line_begin) - 1;

	if (!str_starts(line, line_begin))
		return 0;
	for (; i < line.n && line.p[i] >= '0' && line.p[i] <= '9'; i++) {
		if (__builtin_mul_overflow(seq, 10, &seq) ||
		    __builtin_add_overflow(seq, (uint64_t)(line.p[i] - '0'), &seq))
			return 0;
	}
	return i < line.n && line.p[i] == ',' && seq <= INT64_MAX ? seq : 0;
}

/* More bytes behind those that wait. 0: there are none. */
static ssize_t scan_fill(struct events_scan *s, struct err *e)
{
	uint64_t next = s->at + s->n;
	ssize_t got;
	size_t n;

	if (next >= s->end)
		return 0;
	if (s->from > 0) {
		memmove(s->room, s->room + s->from, s->n);
		s->from = 0;
	}
	if (s->n == s->cap) {
		char *more = realloc(s->room, 2 * s->cap);

		if (!more)
			return err_set(e, ERR_LIMIT, "out of memory");
		s->room = more;
		s->cap *= 2;
	}
	n = s->cap - s->n;
	if (n > s->end - next)
		n = (size_t)(s->end - next);
	do
		got = pread(s->fd, s->room + s->n, n, (off_t)next);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(e, errno, "read the events");
	s->n += (size_t)got;
	return got;
}

static void scan_pass(struct events_scan *s, size_t n)
{
	s->at += n;
	s->from += n;
	s->n -= n;
}

int events_scan_next(struct events_scan *s, struct events_line *ret, struct err *e)
{
	bool skips = false; /* in a line that is too long to be an event */
	size_t seen = 0;

	for (;;) {
		const char *begin = s->room + s->from;
		const char *end = memchr(begin + seen, '\n', s->n - seen);
		ssize_t got;

		if (end) {
			struct str line = { begin, (size_t)(end - begin) };
			uint64_t at = s->at, seq = skips ? 0 : events_seq_of(line);

			scan_pass(s, line.n + 1);
			skips = false;
			seen = 0;
			if (seq <= s->last || line.n >= EVENTS_LINE_MAX ||
			    line.p[line.n - 1] != '}') {
				s->spoilt++;
				continue;
			}
			s->last = seq;
			*ret = (struct events_line){ seq, at, line };
			return 1;
		}
		seen = s->n;
		if (s->n >= EVENTS_LINE_MAX) {
			scan_pass(s, s->n);
			skips = true;
			seen = 0;
		}
		got = scan_fill(s, e);
		if (got <= 0)
			return (int)got;
	}
}
