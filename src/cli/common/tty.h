#pragma once
/*
 * The terminal that we were started on, handed through to a program elsewhere: raw, so that every key reaches that
 * program as its bytes, until this program ends, in whatever way: by itself, or by a signal that can be caught.
 */
#include <stdbool.h>

#include "base/err.h"

/* Of the first of standard input, output and error that is one; false where none is. */
bool tty_size(unsigned *ret_columns, unsigned *ret_rows);

/* Makes standard input raw; nothing where it is no terminal. Again after another program has changed it. */
int tty_raw(struct err *e) MUST_USE;

/* As it was before; harmless if nothing was changed. Also at exit. */
void tty_restore(void);
