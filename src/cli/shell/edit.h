#pragma once
/* Lines that a person edits at a terminal, with a history and completion: libedit. */
#include "base/err.h"

/* Who takes words that could stand at a place; each is borrowed until tell() returns. */
struct edit_words {
	void (*tell)(void *to, const char *word);
	void *to;
};
/* Tells all words that could come behind these, which end with NULL. */
typedef void edit_complete_fn(char **before, const struct edit_words *all);

struct edit;
/* Edits lines at the terminal. ERR_UNSUPPORTED: libedit is not installed. */
struct edit *edit_new(const char *prompt, edit_complete_fn *complete, struct err *e) MUST_USE;
void edit_free(struct edit *e); /* NULL-safe */
/* The next line, without its end; borrowed until the next call. NULL: the end of the input. */
const char *edit_line(struct edit *e);
