#pragma once
/*
 * Splits a command line into an argument vector, without a shell. Blanks separate words. Between
 * '…' every character stands for itself; between "…" a backslash escapes " and \; elsewhere it
 * escapes any character. Nothing else is special: $, *, ~, | and > stand for themselves.
 */
#include "base/arena.h"

enum { SPLIT_WORDS_MAX = 1024 };

/* NULL-terminated, in the arena. NULL with ERR_INVALID for a quote without an end, a backslash
 * at the end, no word, or too many. */
char **split_command(const char *line, struct arena *a, struct err *e) MUST_USE;
