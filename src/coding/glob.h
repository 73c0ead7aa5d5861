#pragma once
/*
 * Patterns for paths, as shells and .gitignore have them: "*" and "?" within a name, "**" over any
 * directories, "[a-z]" and "[!x]", "{a,b}" for either, "\" before what is to be taken as it is. A
 * pattern without '/' is for the last name. The time of a match is bounded by the product of the
 * two lengths.
 */
#include "base/err.h"
#include "base/str.h"

enum { GLOB_PATTERN_MAX = 512, GLOB_EITHER_MAX = 16 };

struct glob {
	size_t n; /* patterns without "{": either matches */
	struct {
		size_t n;
		char text[GLOB_PATTERN_MAX + 1];
	} either[GLOB_EITHER_MAX];
};

/* ERR_INVALID: too long, too many alternatives, or a "{" or "[" that is not closed. */
int glob_init(struct glob *g, struct str pattern, struct err *e) MUST_USE;
/* path: relative. */
bool glob_finds(const struct glob *g, struct str path);
