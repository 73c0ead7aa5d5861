#pragma once
/*
 * Parses what PID 1 of a sandbox reads: the hub's messages, and the kernel's lines about processes,
 * whose names the sandbox chooses. Pure functions, so that they can be fuzzed (tests/fuzz/init.c).
 *
 * A NUL stands behind each message, so no string runs past its end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/wire/wire.h"

enum {
	/* the words and variables of one program, and the entries around them */
	STRINGS_MAX = 8192,
	STRINGS_BEFORE = 3, /* room for "sh -c" before a line, and one more */
};

/* Whether the length n of a message fits its type. */
bool message_check(const void *msg, size_t n);

/* Splits the strings of a program: from strings[STRINGS_BEFORE] its words and a NULL, then its
 * variables and a NULL. All are borrowed from the message. -1: there are too many, or fewer than it
 * says. */
int message_exec(struct im_exec *m, size_t n, char *strings[STRINGS_MAX], char **ret_cwd);

/* Finds the first path of an im_file, absolute and shorter than PATH_MAX, and what follows it
 * (ret_end if nothing follows). -1: there is no such path. */
int message_file(const struct im_file *m, size_t n, const char **ret_path, const char **ret_second,
		 const char **ret_end);

/* A parsed line of /proc/PID/stat. */
struct stat_line {
	const char *name; /* borrowed from the line; not terminated */
	size_t name_n;
	char state; /* a letter of proc(5) */
	pid_t parent;
	long threads;
	uint64_t user, system, start; /* ticks; since boot */
	long pages;
};
bool stat_line_read(const char *line, struct stat_line *ret);
