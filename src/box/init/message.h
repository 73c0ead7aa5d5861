#pragma once
/*
 * What PID 1 of a sandbox reads, taken apart: the hub's messages, and the kernel's lines about
 * processes, whose names are the sandbox's own choice. Pure, so that it is fuzzed
 * (tests/fuzz/init.c).
 *
 * A NUL stands behind each message, so that no string runs out of it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/wire/wire.h"

enum {
	STRINGS_MAX = 8192, /* words and variables of one program, and what is around them */
	STRINGS_BEFORE = 3, /* room for "sh -c" before a line, and one more */
};

/* Whether a message of n bytes is as long as its type wants. */
bool message_check(const void *msg, size_t n);

/* The strings of a program: from strings[STRINGS_BEFORE] its words and a NULL, then its variables
 * and a NULL. All is borrowed from the message. -1: there are too many, or fewer than it says. */
int message_exec(struct im_exec *m, size_t n, char *strings[STRINGS_MAX], char **ret_cwd);

/* The first path of an im_file, absolute and shorter than PATH_MAX, and what follows it, which is
 * ret_end where there is nothing more. -1: there is no such path. */
int message_file(const struct im_file *m, size_t n, const char **ret_path, const char **ret_second,
		 const char **ret_end);

/* A line of /proc/PID/stat. */
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
