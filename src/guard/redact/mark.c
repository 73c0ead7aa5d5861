/* The text of marks. */
#include <string.h>

#include "guard/redact/internal.h"

static const char mark_head[] = "[REDACTED:";

static bool is_tag(struct str s)
{
	if (str_is(s, REDACT_TAG_OUTPUT))
		return true;
	for (size_t i = 0; i < s.n; i++) {
		if (!(char_class(s.p[i]) & IS_LOWER) && !(s.p[i] >= '2' && s.p[i] <= '7'))
			return false;
	}
	return s.n == REDACT_TAG;
}

int redact_mark_add(struct buf *to, const char *kind, const char *tag, struct err *e)
{
	return buf_addf(to, e, "%s%s:%s]", mark_head, kind, tag);
}

/* text begins behind the head. */
static bool mark_read(struct str text, struct redact_mark *ret)
{
	size_t kind = 0, end;

	while (kind < text.n && (char_class(text.p[kind]) & (URL64 | IS_DOT)))
		kind++;
	if (kind == 0 || kind > REDACT_KIND_MAX || kind == text.n || text.p[kind] != ':')
		return false;
	for (end = kind + 1; end < text.n && (char_class(text.p[end]) & ALNUM); end++)
		;
	ret->kind = (struct str){ text.p, kind };
	ret->tag = (struct str){ text.p + kind + 1, end - kind - 1 };
	return end < text.n && text.p[end] == ']' && is_tag(ret->tag);
}

bool redact_mark_next(struct str text, struct redact_mark *ret)
{
	const size_t head = strlen(mark_head);
	const char *at = text.n < head ? NULL : memmem(text.p, text.n, mark_head, head);

	if (!at)
		return false;
	*ret = (struct redact_mark){ .whole = { at, head } };
	ret->exact = mark_read((struct str){ at + head, (size_t)(text.p + text.n - at) - head },
			       ret);
	if (ret->exact)
		ret->whole.n = (size_t)(ret->tag.p + ret->tag.n + 1 - at);
	return true;
}

size_t redact_mark_likes(struct str text)
{
	static const char *const words[] = { "REDACTED", "redacted" };
	const char *end = text.n > 0 ? text.p + text.n : NULL;
	size_t found = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i]);
		struct str rest = text;

		while (rest.n >= n && (rest.p = memmem(rest.p, rest.n, words[i], n))) {
			rest.p += n;
			rest.n = (size_t)(end - rest.p);
			found++;
		}
	}
	while (text.n > 0 && (text.p = memchr(text.p, ':', text.n))) {
		struct redact_mark m;

		text.n = (size_t)(end - ++text.p);
		found += mark_read(text, &m);
	}
	return found;
}

bool is_in_mark(struct str text, size_t at)
{
	enum { LONGEST = sizeof(mark_head) + REDACT_KIND_MAX + 1 + REDACT_TAG };
	const size_t head = strlen(mark_head), least = at > LONGEST ? at - LONGEST : 0;
	const char *begin = memrchr(text.p + least, '[', at - least + (at < text.n));
	struct str rest;
	struct redact_mark m;

	if (!begin)
		return false;
	rest = (struct str){ begin, (size_t)(text.p + text.n - begin) };
	rest.n = rest.n < LONGEST ? rest.n : LONGEST;
	return str_starts(rest, mark_head) &&
	       mark_read((struct str){ begin + head, rest.n - head }, &m) &&
	       m.tag.p + m.tag.n >= text.p + at;
}
