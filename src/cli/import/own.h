#pragma once
/* The operator's own file, as verbs change it: all text that they do not mean stays. */
#include "cli/import/foreign.h"
#include "config/config.h"

/* Appends what the file is to be. */
typedef int (*own_edit_fn)(const void *data, struct str text, struct buf *to, struct err *e);

/* c: the file, read. ERR_CONFLICT: it was written meanwhile. ERR_INVALID: a hub would not take the
 * new one; nothing is written. */
int own_edit(const struct config *c, own_edit_fn edit, const void *data, struct err *e) MUST_USE;

/* Adds what was found. */
int own_add(const struct config *c, const struct foreign_found *found, struct err *e) MUST_USE;

/* Says a note of struct foreign_options on standard error. */
void own_note(void *data, struct str server, struct str text);
