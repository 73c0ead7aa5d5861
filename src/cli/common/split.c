#include "cli/common/split.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copies a quoted part. *at: from after the opening quote to after the closing one. */
static int take_quoted(const char **at, char quote, char **to, struct err *e)
{
	const char *p = *at;

	for (; *p && *p != quote; p++) {
		if (quote == '"' && *p == '\\' && (p[1] == '"' || p[1] == '\\'))
			p++;
		*(*to)++ = *p;
	}
	if (!*p)
		return err_set(e, ERR_INVALID, "a %c quote is not closed", quote);
	*at = p + 1;
	return 0;
}

/* Copies one word, which begins at *at. */
static int take_word(const char **at, char **to, struct err *e)
{
	while (**at && !is_blank(**at)) {
		char c = *(*at)++;

		if (c == '\'' || c == '"') {
			if (take_quoted(at, c, to, e) < 0)
				return -1;
			continue;
		}
		if (c == '\\') {
			c = **at;
			if (!c)
				return err_set(e, ERR_INVALID,
					       "the command line ends in a backslash");
			(*at)++;
		}
		*(*to)++ = c;
	}
	*(*to)++ = '\0';
	return 0;
}

char **split_command(const char *line, struct arena *a, struct err *e)
{
	char **words = arena_array(a, SPLIT_WORDS_MAX + 1, sizeof(*words), e);
	/* A word is never longer than its source with the blank or NUL after it. */
	char *to = words ? arena_alloc(a, strlen(line) + 1, e) : NULL;
	size_t n = 0;

	if (!to)
		return NULL;
	for (;;) {
		while (is_blank(*line))
			line++;
		if (!*line)
			break;
		if (n == SPLIT_WORDS_MAX) {
			err_set(e, ERR_INVALID, "more than %d words", SPLIT_WORDS_MAX);
			return NULL;
		}
		words[n++] = to;
		if (take_word(&line, &to, e) < 0)
			return NULL;
	}
	if (n == 0) {
		err_set(e, ERR_INVALID, "the command line is empty");
		return NULL;
	}
	return words;
}
