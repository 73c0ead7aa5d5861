#pragma once
/*
 * What a hub says to the warden, checked before anything is done with it. Pure, so that it is
 * fuzzed (tests/fuzz/warden.c).
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "box/wire/wire.h"

/* Whether a message of n bytes is one that the warden knows: as long as its type wants, its counts
 * within their bounds, and each of its strings ended. On -1 *e says what is wrong. */
int message_check(const void *msg, size_t n, struct err *e) MUST_USE;

/* Reads one mount of a wm_create, which begins at `at`. Where the next one begins; NULL when it
 * does not end before `end`. The paths are borrowed from the message. */
const char *message_mount(const char *at, const char *end, struct wm_mount *ret,
			  const char **ret_host, const char **ret_guest);

/* Whether a message of n bytes is a hub's first one, and from the build whose BUILD_ID is
 * `build`. */
bool message_is_hello(const void *msg, size_t n, const char *build);
