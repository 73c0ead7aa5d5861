#pragma once
/*
 * Our terminal, connected to a program elsewhere. It is raw, so every key reaches that program as
 * bytes, until this process exits or is ended by a signal that can be caught.
 */
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* The size of the first of standard input, output and error that is a terminal; false if none
 * is. */
bool tty_size(unsigned *ret_columns, unsigned *ret_rows);

/* Makes standard input raw, unless it is no terminal. May be called again after another program
 * changed it. */
int tty_raw(struct err *e) MUST_USE;

/* All of standard input, at most what fits into `to`; of a terminal one line that it does not show,
 * without the line break, asked for by the prompt. Room is taken at once, so that a secret leaves
 * no copy. */
int tty_read_secret(const char *prompt, struct buf *to, struct err *e) MUST_USE;

/* Restores the old mode, if it was changed. Also called at exit. */
void tty_restore(void);
