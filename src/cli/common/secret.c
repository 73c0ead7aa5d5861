#include "cli/common/secret.h"

#include <ctype.h>
#include <stdio.h>

/* As a variable: npm-token is NPM_TOKEN. */
static void secret_name_variable(struct secret_word *to)
{
	char *at = to->variable;

	for (size_t i = 0; i < to->ref.n && i < SECRET_WORD_MAX - 5; i++) {
		unsigned char c = (unsigned char)to->ref.p[i];

		*at++ = isalnum(c) ? (char)toupper(c) : '_';
	}
	snprintf(at, 6, "%s", to->file ? "_FILE" : "");
}

static int secret_word_read(struct secret_words *w, const char *word, bool file, struct err *e)
{
	size_t n = strcspn(word, "=");
	const char *variable = word[n] ? word + n + 1 : NULL;
	struct secret_word *to = &w->all[w->n];

	if (w->n == SECRET_WORDS_MAX)
		return err_set(e, ERR_INVALID, "--secret: at most %d times", SECRET_WORDS_MAX);
	*to = (struct secret_word){ .ref = { word, n }, .file = file };
	if (!variable)
		secret_name_variable(to);
	else if (!*variable || strlen(variable) > SECRET_WORD_MAX || strchr(variable, '='))
		return err_set(e, ERR_INVALID, "--secret: \"%.80s\" is no variable", variable);
	else
		strcpy(to->variable, variable);
	for (size_t i = 0; i < w->n; i++) {
		if (strcmp(w->all[i].variable, to->variable) == 0)
			return err_set(e, ERR_INVALID, "--secret: two are to be in %s",
				       to->variable);
	}
	w->n++;
	return 0;
}

int secret_words_read(struct secret_words *w, const struct secret_options *o, struct err *e)
{
	w->n = 0;
	for (size_t i = 0; i < o->words.n; i++) {
		if (secret_word_read(w, o->words.p[i], false, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < o->files.n; i++) {
		if (secret_word_read(w, o->files.p[i], true, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < o->logins.n; i++) {
		if (secret_word_read(w, o->logins.p[i], false, e) < 0)
			return -1;
		w->all[w->n - 1].begin = true;
	}
	return 0;
}
