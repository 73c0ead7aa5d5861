#include "coding/text.h"

#include <inttypes.h>
#include <string.h>

#include "json/document/utf8.h"

bool text_is_binary(struct str front)
{
	enum { LOOK = 8192 };

	/* UTF-16 needs no NUL, but has its mark at the front. */
	return str_starts(front, "\xff\xfe") || str_starts(front, "\xfe\xff") ||
	       (front.n && memchr(front.p, '\0', front.n < LOOK ? front.n : LOOK));
}

/* ---- windows ------------------------------------------------------------------------------- */

void text_window_fini(struct text_window *w)
{
	buf_fini(&w->before);
	buf_fini(&w->text);
	buf_fini(&w->after);
}

/* Keeps the last TEXT_AROUND bytes. */
static int window_pass(struct text_window *w, struct str s, struct err *e)
{
	struct buf *b = &w->before;

	b->max = 2 * TEXT_AROUND;
	if (s.n > TEXT_AROUND) {
		b->n = 0;
		s = (struct str){ s.p + s.n - TEXT_AROUND, TEXT_AROUND };
	}
	if (b->n + s.n > 2 * TEXT_AROUND)
		buf_drop(b, b->n - TEXT_AROUND);
	return buf_add(b, s.p, s.n, e);
}

/* part: of one line. */
static int window_take(struct text_window *w, struct str part, bool ends, struct err *e)
{
	size_t room = w->max - w->text.n;

	w->text.max = w->max;
	if (w->at == 0)
		w->lines++;
	if (part.n <= room)
		return buf_add(&w->text, part.p, part.n, e);
	if (w->lines > 1) {
		/* All of the line is left for the next window. */
		w->text.n -= w->at;
		w->lines--;
		w->closed = true;
		return 0;
	}
	w->cut += part.n - room - ends;
	return buf_add(&w->text, part.p, room, e);
}

int text_window_feed(struct text_window *w, struct str piece, struct err *e)
{
	w->line = w->line ? w->line : 1;
	while (piece.n > 0) {
		const char *end = memchr(piece.p, '\n', piece.n);
		struct str part = { piece.p, end ? (size_t)(end - piece.p) + 1 : piece.n };
		int rc = 0;

		if (!w->closed && w->at == 0 && w->line >= w->first + w->limit)
			w->closed = true;
		if (w->line < w->first)
			rc = window_pass(w, part, e);
		else if (!w->closed)
			rc = window_take(w, part, end, e);
		if (w->closed) {
			size_t room = TEXT_AROUND - w->after.n;

			w->after.max = TEXT_AROUND;
			if (rc == 0)
				rc = buf_add(&w->after, part.p, part.n < room ? part.n : room, e);
			if (rc == 0 && part.n >= room && !w->count)
				rc = 1;
		}
		w->line += end != NULL;
		w->at = end ? 0 : w->at + part.n;
		if (rc)
			return rc;
		piece.p += part.n;
		piece.n -= part.n;
	}
	return 0;
}

uint64_t text_window_count(const struct text_window *w)
{
	return w->line ? w->line - (w->at == 0) : 0;
}

uint64_t text_window_next(const struct text_window *w)
{
	return text_window_count(w) >= w->first + w->lines ? w->first + w->lines : 0;
}

static int add_clean(struct str s, struct buf *to, uint64_t *bad, struct err *e)
{
	while (s.n > 0) {
		size_t run = utf8_run(s), n = 0;

		if (buf_add(to, s.p, run, e) < 0)
			return -1;
		s.p += run;
		s.n -= run;
		if (s.n == 0)
			break;
		utf8_next(s, &n);
		if (buf_add(to, "\xef\xbf\xbd", 3, e) < 0)
			return -1;
		++*bad;
		s.p += n;
		s.n -= n;
	}
	return 0;
}

/* "N\t" */
static int add_number(uint64_t n, struct buf *to, struct err *e)
{
	char text[24], *p = text + sizeof(text);

	*--p = '\t';
	do
		*--p = (char)('0' + n % 10);
	while (n /= 10);
	return buf_add(to, p, (size_t)(text + sizeof(text) - p), e);
}

int text_clean(struct str s, struct buf *to, struct err *e)
{
	uint64_t bad = 0;

	return add_clean(s, to, &bad, e);
}

bool text_window_is_cut(const struct text_window *w)
{
	struct str rest = buf_str(&w->text);
	bool cut = w->cut > 0;

	while (!cut && rest.n > TEXT_LINE_SHOWN) {
		const char *end = memchr(rest.p, '\n', TEXT_LINE_SHOWN + 1);

		cut = !end;
		if (end)
			rest = (struct str){ end + 1, rest.n - (size_t)(end + 1 - rest.p) };
	}
	return cut;
}

int text_number(struct str text, uint64_t first, uint64_t cut, struct buf *to, uint64_t *ret_bad,
		struct err *e)
{
	while (text.n > 0) {
		const char *end = memchr(text.p, '\n', text.n);
		size_t n = end ? (size_t)(end - text.p) : text.n, shown = n;
		uint64_t more = end || n < text.n ? 0 : cut;

		if (shown > TEXT_LINE_SHOWN) {
			shown = TEXT_LINE_SHOWN;
			while (shown > TEXT_LINE_SHOWN - 4 && (text.p[shown] & 0xc0) == 0x80)
				shown--;
		}
		more += n - shown;
		if (add_number(first++, to, e) < 0 ||
		    add_clean((struct str){ text.p, shown }, to, ret_bad, e) < 0 ||
		    (more && buf_addf(to, e, " [%" PRIu64 " more bytes of this line]", more) < 0) ||
		    buf_add(to, "\n", 1, e) < 0)
			return -1;
		n += end != NULL;
		text.p += n;
		text.n -= n;
	}
	return 0;
}

/* ---- editing ------------------------------------------------------------------------------- */

static const char *text_find(struct str text, struct str what)
{
	return what.n <= text.n ? memmem(text.p, text.n, what.p, what.n) : NULL;
}

static struct str text_behind(struct str text, const char *at)
{
	return (struct str){ at, (size_t)(text.p + text.n - at) };
}

/* A search for what is to be replaced, from the front on. */
struct search {
	struct str all, old;
	const struct text_span *mark, *end; /* those that end behind the last place */
	bool cut; /* a place was passed over, since it has a part of a mark */
};

static struct search search_new(struct str text, struct str old, const struct text_edit *edit)
{
	return (struct search){ text, old, edit->marks, edit->marks + edit->marks_n, false };
}

/* Whether old at this byte has a part of a mark. */
static bool search_cuts(struct search *s, size_t at)
{
	size_t stop = at + s->old.n;

	while (s->mark < s->end && s->mark->at + s->mark->n <= at)
		s->mark++;
	for (const struct text_span *m = s->mark; m < s->end && m->at < stop; m++) {
		if (m->at < at || m->at + m->n > stop)
			return true;
	}
	return false;
}

/* The next place in rest, which ends where the whole text does. */
static const char *search_next(struct search *s, struct str rest)
{
	const char *at;

	while ((at = text_find(rest, s->old)) && search_cuts(s, (size_t)(at - s->all.p))) {
		s->cut = true;
		rest = text_behind(rest, at + 1);
	}
	return at;
}

static int64_t replace(struct search s, struct str new, struct buf *to, struct err *e)
{
	struct str text = s.all, old = s.old;
	int64_t n = 0;

	for (const char *at; (at = search_next(&s, text)); n++) {
		if (buf_add(to, text.p, (size_t)(at - text.p), e) < 0 ||
		    buf_add(to, new.p, new.n, e) < 0)
			return -1;
		text = text_behind(text, at + old.n);
	}
	return buf_add(to, text.p, text.n, e) < 0 ? -1 : n;
}

static uint64_t text_count(struct str text, struct str what)
{
	uint64_t n = 0;

	for (const char *at; (at = text_find(text, what)); n++)
		text = text_behind(text, at + what.n);
	return n;
}

/* One that overlaps the first is another place that could be meant. ret_cut is set where one was
 * passed over. */
static uint64_t places(struct search s, bool *ret_cut)
{
	struct search again = s;
	struct str rest = s.all;
	const char *at, *first = NULL;
	uint64_t n = 0;

	for (; (at = search_next(&s, rest)); n++) {
		first = first ? first : at;
		rest = text_behind(rest, at + s.old.n);
	}
	*ret_cut |= s.cut;
	return n == 1 && search_next(&again, text_behind(s.all, first + 1)) ? 2 : n;
}

static bool text_has(struct str s, const char *what)
{
	return text_find(s, str_of(what)) != NULL;
}

static int with_crlf(struct str s, struct buf *to, struct err *e)
{
	to->max = 2 * s.n;
	return replace((struct search){ .all = s, .old = STR_LIT("\n") }, STR_LIT("\r\n"), to, e) <
			       0
		     ? -1
		     : 0;
}

int64_t text_replace(struct str text, const struct text_edit *edit, struct buf *to, struct err *e)
{
	autobuf struct buf old_crlf = BUF_INIT(0), new_crlf = BUF_INIT(0);
	struct str old = edit->old, new = edit->new;
	bool cut = false;
	uint64_t n = places(search_new(text, old, edit), &cut);

	if (n == 0 && text_has(text, "\r\n") && text_has(old, "\n") && !text_has(old, "\r")) {
		if (with_crlf(old, &old_crlf, e) < 0 ||
		    (!text_has(new, "\r") && with_crlf(new, &new_crlf, e) < 0))
			return -1;
		old = buf_str(&old_crlf);
		new = text_has(new, "\r") ? new : buf_str(&new_crlf);
		n = places(search_new(text, old, edit), &cut);
	}
	if (n == 0 && cut)
		return err_set(e, ERR_INVALID,
			       "old_string is in the file only where it has a part of a mark "
			       "[REDACTED:...], and no part of a mark can be replaced: give the "
			       "whole mark, or text that is in none");
	if (n == 0)
		return err_set(e, ERR_INVALID,
			       "old_string is not in the file: it must match exactly, with all "
			       "spaces, tabs and ends of lines, and without line numbers");
	if (n > 1 && !edit->all)
		return err_set(e, ERR_INVALID,
			       "old_string is %" PRIu64 " times in the file: add lines around it "
			       "until it is unique, or set replace_all",
			       n);
	return replace(search_new(text, old, edit), new, to, e);
}

static uint64_t line_of(struct str text, const char *at)
{
	return text_count((struct str){ text.p, (size_t)(at - text.p) }, STR_LIT("\n")) + 1;
}

uint64_t text_place(struct str text, struct str old)
{
	enum { TRIES = 32 };
	const char *at = old.n ? text_find(text, old) : NULL;
	struct str longest = STR_LIT("   "); /* shorter ones are everywhere */
	const char *found = NULL;
	int tries = 0;

	if (at)
		return line_of(text, at);
	while (old.n > 0 && tries < TRIES) {
		const char *end = memchr(old.p, '\n', old.n);
		struct str line = { old.p, end ? (size_t)(end - old.p) : old.n };

		old = text_behind(old, line.p + line.n + (end != NULL));
		line = str_trim(line);
		if (line.n <= longest.n)
			continue;
		at = text_find(text, line);
		tries++;
		if (at) {
			longest = line;
			found = at;
		}
	}
	return found ? line_of(text, found) : 1;
}
