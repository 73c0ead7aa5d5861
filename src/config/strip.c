/* Blanks out what is not JSON: comments, from // to the end of the line, and between slash-star and
 * star-slash; and commas before a closing bracket. */
#include "json/document/raw.h"
#include "json/document/where.h"
#include "config/internal.h"

static void strip_blank(char *text, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (text[i] != '\n')
			text[i] = ' ';
	}
}

/* The index behind the comment that begins at i; n + 1: it has no end. */
static size_t strip_end(const char *text, size_t n, size_t i)
{
	const char *end = text[i + 1] == '/' ? memchr(text + i, '\n', n - i)
					     : memmem(text + i + 2, n - i - 2, "*/", 2);

	if (text[i + 1] == '/')
		return end ? (size_t)(end - text) : n;
	return end ? (size_t)(end - text) + 2 : n + 1;
}

int config_strip(char *text, size_t n, size_t *ret_at, struct err *e)
{
	for (size_t i = 0; i < n;) {
		size_t end;

		if (text[i] == '"') {
			i = json_string_end((struct str){ text, n }, i + 1);
			continue;
		}
		if (text[i] != '/' || i + 1 == n || (text[i + 1] != '/' && text[i + 1] != '*')) {
			i++;
			continue;
		}
		end = strip_end(text, n, i);
		if (end > n) {
			*ret_at = i;
			return err_set(e, ERR_INVALID, "the comment has no end");
		}
		strip_blank(text, i, end);
		i = end;
	}
	return 0;
}

int config_strip_loosely(char *text, size_t n, struct err *e)
{
	size_t comma = n, at;

	if (config_strip(text, n, &at, e) < 0)
		return err_wrap(e, "line %u", json_line((struct str){ text, n }, at));
	for (size_t i = 0; i < n; i++) {
		if (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r')
			continue;
		if ((text[i] == '}' || text[i] == ']') && comma < n)
			text[comma] = ' ';
		comma = text[i] == ',' ? i : n;
		if (text[i] == '"')
			i = json_string_end((struct str){ text, n }, i + 1) - 1;
	}
	return 0;
}
