#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/args.h"
#include "cli/common/file.h"
#include "json/document/utf8.h"

static int check_name(const struct args *a, const char *name, struct err *e)
{
	if (a->n == ARGS_MAX)
		return err_set(e, ERR_INVALID, "more than %d arguments", ARGS_MAX);
	if (!utf8_valid(str_of(name)))
		return err_set(e, ERR_INVALID, "the name %.60s is not UTF-8", name);
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->words[i].name, name) == 0)
			return err_set(e, ERR_INVALID,
				       "%.60s is given twice; an array is written %.60s=[…]", name,
				       name);
	}
	return 0;
}

/* The text of a file; all files together are bounded. */
static int read_text(struct args *a, struct args_word *w, const char *path, struct err *e)
{
	w->file = BUF_INIT(ARGS_BYTES_MAX - a->bytes);
	if (file_read(path, &w->file, e) < 0)
		return err_wrap(e, "%.60s", w->name);
	a->bytes += w->file.n;
	w->text = buf_str(&w->file);
	return 0;
}

static int read_word(struct args *a, const char *word, struct err *e)
{
	const char *equals = strchr(word, '=');
	bool json = equals && equals > word && equals[-1] == ':';
	size_t n = equals ? (size_t)(equals - word) - json : 0;
	autofree char *name = strndup(word, n);
	struct args_word *w;

	if (!name)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (n == 0)
		return err_set(
			e, ERR_INVALID,
			"an argument is written NAME=VALUE or NAME:=JSON, or all of them as one "
			"JSON object; '%.40s' is neither",
			word);
	if (check_name(a, name, e) < 0)
		return -1;
	w = &a->words[a->n++];
	w->name = take_ptr(name);
	w->text = str_of(equals + 1);
	if (equals[1] == '@' && read_text(a, w, equals + 2, e) < 0)
		return -1;
	if (!json)
		return 0;
	w->json = json_parse(w->text, NULL, e);
	return w->json ? 0 : err_wrap(e, "%.60s:= takes JSON", w->name);
}

static int read_object(struct args *a, struct str text, const char *what, struct err *e)
{
	a->object = json_parse(text, NULL, e);
	if (!a->object)
		return err_wrap(e, "%s", what);
	if (json_type(json_root(a->object)) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "%s: the arguments are an object, not %s", what,
			       json_type_name(json_type(json_root(a->object))));
	return 0;
}

static int read_input(struct args *a, struct err *e)
{
	autobuf struct buf input = BUF_INIT(ARGS_BYTES_MAX);

	return file_read_fd(STDIN_FILENO, "standard input", &input, e) < 0
		     ? -1
		     : read_object(a, buf_str(&input), "standard input", e);
}

struct args *args_read(const char *const *words, size_t n, struct err *e)
{
	AUTO(args_free) struct args *a = calloc(1, sizeof(*a));

	if (!a) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (n == 1 && words[0][0] == '{')
		return read_object(a, str_of(words[0]), "the arguments", e) < 0 ? NULL
										: take_ptr(a);
	if (n == 1 && strcmp(words[0], "-") == 0)
		return read_input(a, e) < 0 ? NULL : take_ptr(a);
	for (size_t i = 0; i < n; i++) {
		if (read_word(a, words[i], e) < 0)
			return NULL;
	}
	return take_ptr(a);
}

void args_free(struct args *a)
{
	if (!a)
		return;
	json_free(a->object);
	for (size_t i = 0; i < a->n; i++) {
		free(a->words[i].name);
		buf_fini(&a->words[i].file);
		json_free(a->words[i].json);
	}
	free(a);
}
