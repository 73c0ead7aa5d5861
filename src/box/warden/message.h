#pragma once
/*
 * Checks of the hub's messages, before the warden acts on them. Pure functions, so that they can be
 * fuzzed (tests/fuzz/warden.c).
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "box/wire/wire.h"

/* Whether the warden accepts a message of n bytes: its length fits its type, its counts are within
 * their bounds, and each of its strings is terminated. On -1 *e says what is wrong. */
int message_check(const void *msg, size_t n, struct err *e) MUST_USE;

/* Reads one mount of a wm_create, which begins at `at`. Returns the start of the next one; NULL
 * when it does not end before `end`. The paths are borrowed from the message. */
const char *message_mount(const char *at, const char *end, struct wm_mount *ret,
			  const char **ret_host, const char **ret_guest);

/* Whether a message of n bytes is the first one of a hub of the build whose BUILD_ID is `build`. */
bool message_is_hello(const void *msg, size_t n, const char *build);
