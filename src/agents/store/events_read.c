/* Pages: first the places of their events, as index and line feeds tell, then the events. */
#include <errno.h>
#include <unistd.h>

#include "agents/store/internal.h"
#include "json/document/json.h"

struct program_sandbox {
	uint64_t seq, at;
	uint64_t earlier; /* seq of the event before it; 0: none, or none that was looked at */
	size_t n;
};

/* A ring of at most `limit` places, which drops the oldest. */
struct places {
	struct program_sandbox p[EVENTS_PAGE_MAX];
	size_t limit, first, n;
};

static struct program_sandbox *places_at(struct places *l, size_t i)
{
	return &l->p[(l->first + i) % l->limit];
}

static void places_drop(struct places *l)
{
	l->first = (l->first + 1) % l->limit;
	l->n--;
}

/* Where to begin: not after the first event of the page, and one earlier where there is one. */
static struct events_entry read_begin(const struct events *v, const struct events_range *r,
				      size_t limit)
{
	const struct events_index *x = events_index_of(v);
	struct events_entry begin = events_index_find(x, EVENTS_BY_SEQ, r->after), end, last;

	if (!r->newest)
		return begin;
	end = events_index_find(x, EVENTS_BY_SEQ, r->before ? r->before - 1 : UINT64_MAX);
	last = events_index_find(x, EVENTS_BY_BEFORE,
				 end.before > limit ? end.before - limit - 1 : 0);
	return last.at > begin.at ? last : begin;
}

static int read_places(struct events_scan *s, const struct events_range *r, struct places *l,
		       bool *ret_more, struct err *e)
{
	struct events_line line;
	uint64_t earlier = 0;
	int got;

	while ((got = events_scan_next(s, &line, e)) > 0) {
		if (r->before && line.seq >= r->before)
			break;
		if (line.seq > r->after) {
			if (l->n == l->limit && !r->newest) {
				*ret_more = true;
				break;
			}
			if (l->n == l->limit)
				places_drop(l);
			l->n++;
			*places_at(l, l->n - 1) = (struct program_sandbox){ line.seq, line.at,
									    earlier, line.text.n };
		}
		earlier = line.seq;
	}
	return got < 0 ? -1 : 0;
}

/* Cuts the page at the end that is not asked for. */
static void read_bound(struct places *l, bool newest, bool *ret_more)
{
	size_t bytes = 0, n = 0;

	while (n < l->n && bytes < EVENTS_PAGE_BYTES) {
		bytes += places_at(l, newest ? l->n - 1 - n : n)->n;
		n++;
	}
	if (n < l->n && !newest)
		*ret_more = true;
	while (newest && l->n > n)
		places_drop(l);
	l->n = n;
}

static bool line_is_event(struct str line)
{
	struct err ignored;
	AUTO(json_free) struct json_doc *doc = json_parse(line, NULL, &ignored);

	return doc && json_type(json_root(doc)) == JSON_OBJECT;
}

static int read_line(int fd, const struct program_sandbox *place, char *room, struct err *e)
{
	for (size_t n = 0; n < place->n;) {
		ssize_t got = pread(fd, room + n, place->n - n, (off_t)(place->at + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_sys(e, got ? errno : EIO, "read an event");
		n += (size_t)got;
	}
	return 0;
}

int events_read(struct events *v, const struct events_range *r,
		void (*on_event)(void *owner, uint64_t seq, struct str line), void *owner,
		struct events_page *ret, struct err *e)
{
	struct places l = { .limit = r->limit && r->limit < EVENTS_PAGE_MAX ? r->limit
									    : EVENTS_PAGE_MAX };
	struct events_entry begin = read_begin(v, r, l.limit);
	struct events_page page = { 0 };
	struct events_scan s;
	size_t longest = 0;
	autofree char *room = NULL;
	int got;

	if (events_scan_init(&s, events_fd(v), begin.at, events_bytes(v),
			     begin.seq ? begin.seq - 1 : 0, e) < 0)
		return -1;
	got = read_places(&s, r, &l, &page.more, e);
	page.spoilt = s.spoilt;
	events_scan_fini(&s);
	if (got < 0)
		return -1;
	read_bound(&l, r->newest, &page.more);
	if (l.n > 0) {
		page.first = places_at(&l, 0)->seq;
		page.last = places_at(&l, l.n - 1)->seq;
		if (r->newest)
			page.more = places_at(&l, 0)->earlier > r->after;
	}
	for (size_t i = 0; i < l.n; i++)
		longest = places_at(&l, i)->n > longest ? places_at(&l, i)->n : longest;
	room = malloc(longest + 1);
	if (!room)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < l.n; i++) {
		const struct program_sandbox *place = places_at(&l, i);
		struct str line = { room, place->n };

		if (read_line(events_fd(v), place, room, e) < 0)
			return -1;
		if (!line_is_event(line)) {
			page.spoilt++;
			continue;
		}
		page.n++;
		on_event(owner, place->seq, line);
	}
	*ret = page;
	return 0;
}
