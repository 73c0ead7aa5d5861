#pragma once
/*
 * Git of this machine. A sandbox may have written in the folder that it works on: nothing of what
 * the repository says runs a program here, such as hooks, file system monitors and pagers.
 */
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum { GIT_SETTING_MAX = 512, GIT_WORDS_MAX = 12 };

/* Whether git has a value for this key where we are, for ret. */
bool git_setting(const char *key, char ret[GIT_SETTING_MAX]);

/* Starts `git -C dir WORD...`. in, out: its standard input and output. alone: it knows no
 * configuration but the repository's. The caller calls git_wait(). */
pid_t git_start(const char *dir, bool alone, const char *const *words, int in, int out,
		struct err *e) MUST_USE;
/* Returns its exit status; one above `most` is ERR_INVALID. */
int git_wait(pid_t pid, int most, struct err *e) MUST_USE;

/* The same with input that is all there. *ret: where it prints, which the caller closes before
 * git_wait(). */
pid_t git_open(const char *dir, bool alone, const char *const *words, struct str input, int *ret,
	       struct err *e) MUST_USE;
/* Runs it to its end, and appends what it prints. Returns as git_wait() does. */
int git_run(const char *dir, bool alone, const char *const *words, struct str input, int most,
	    struct buf *ret, struct err *e) MUST_USE;
/* Without input, and no exit status but 0 is right. */
int git_ask(const char *dir, bool alone, const char *const *words, struct buf *ret,
	    struct err *e) MUST_USE;
