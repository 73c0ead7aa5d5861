#include "base/glob.h"

#include <string.h>

/* False for characters that begin another command in a shell, or insert its output. */
static bool glob_is_free(char c)
{
	static const bool shell[256] = {
		[';'] = true, ['&'] = true,  ['|'] = true, ['`'] = true, ['$'] = true,
		['<'] = true, ['>'] = true,  ['('] = true, [')'] = true, ['{'] = true,
		['}'] = true, ['\\'] = true, [0x7f] = true
	};

	return (unsigned char)c >= ' ' && !shell[(unsigned char)c];
}

/* Whether a star may stand for the bytes. */
static bool glob_covers(const char *p, size_t n, bool any)
{
	for (size_t i = 0; !any && i < n; i++) {
		if (!glob_is_free(p[i]))
			return false;
	}
	return true;
}

static const char *glob_star(struct str g)
{
	return g.n ? memchr(g.p, '*', g.n) : NULL;
}

/* Takes the piece before the next star of a pattern, and that star. */
static struct str glob_piece(struct str *g)
{
	const char *star = glob_star(*g);
	struct str piece = { g->p, star ? (size_t)(star - g->p) : g->n };

	g->p += piece.n + (star != NULL);
	g->n -= piece.n + (star != NULL);
	return piece;
}

/* Each piece takes the first place behind the one before: a later one only leaves that star more to
 * stand for. */
static bool glob_run(struct str g, struct str s, bool any)
{
	bool has_star = glob_star(g) != NULL;
	struct str piece = glob_piece(&g);
	const char *at;

	if (!has_star)
		return str_eq(piece, s);
	if (s.n < piece.n || !str_eq((struct str){ s.p, piece.n }, piece))
		return false;
	s = (struct str){ s.p + piece.n, s.n - piece.n };
	while (glob_star(g)) {
		piece = glob_piece(&g);
		at = !piece.n ? s.p : s.n ? memmem(s.p, s.n, piece.p, piece.n) : NULL;
		if ((piece.n && !at) || !glob_covers(s.p, (size_t)(at - s.p), any))
			return false;
		s = (struct str){ at + piece.n, s.n - (size_t)(at - s.p) - piece.n };
	}
	return s.n >= g.n && str_eq((struct str){ s.p + s.n - g.n, g.n }, g) &&
	       glob_covers(s.p, s.n - g.n, any);
}

bool glob_matches(struct str pattern, struct str text)
{
	return glob_run(pattern, text, true);
}

bool glob_allows(struct str pattern, struct str text)
{
	return glob_run(pattern, text, str_is(pattern, "*"));
}
