#pragma once
/*
 * A command line of the operator's, as an argument vector: by rules of ours, no shell. Blanks separate
 * words. Between '…' everything stands for itself; between "…" a backslash before " or \ takes its meaning
 * away; outside of both a backslash takes away that of any character. Nothing else has a meaning: $, *, ~, |
 * and > stand for themselves.
 */
#include "base/arena.h"

enum { SPLIT_WORDS_MAX = 1024 };

/* NULL-terminated, of the arena. NULL with ERR_INVALID for a quote without an end, a backslash at the end,
 * no word at all or too many. */
char **split_command(const char *line, struct arena *a, struct err *e) MUST_USE;
