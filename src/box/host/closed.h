#pragma once
/*
 * Folders of the host that no sandbox is given: those of the hub itself. Who could write there would be
 * the hub's next registry or warden, and who could read there has its token.
 *
 * A path is closed where it is such a folder, is in one, or has one in it, by whatever links and names; one that is
 * not there yet counts as where it would be.
 */
#include "base/err.h"
#include "box/host/box.h"

struct closed {
	char *paths[CLOSED_MAX]; /* owned */
	size_t n;
};

/* Copies n absolute paths. */
int closed_init(struct closed *c, const char *const *paths, size_t n, struct err *e) MUST_USE;
void closed_fini(struct closed *c);

/* ERR_DENIED. A host path that is not there is not closed: there is nothing to give. */
int closed_check(const struct closed *c, const char *host, struct err *e) MUST_USE;
