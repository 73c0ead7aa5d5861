#pragma once
/* Where programs are on this host: in PATH, and where installers of a user put them. */
#include "config/config.h"

/* The path of a program, as it is found: links are not followed. more: folders to look in before,
 * or patterns of them, below the user's home where they begin with ~/; NULL: none. */
bool places_find(const char *name, const struct field_strs *more, char *ret, size_t size);
