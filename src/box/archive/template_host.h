#pragma once
/*
 * The template `host`: the host's own programs, read-only, and nothing else of the host. A
 * synthetic /etc with what programs need to run (names of users, the loader's cache, certificates,
 * alternatives), an empty home, a work directory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Directories of the host that are bound read-only where they are not links into /usr. */
extern const char *const template_host_dirs[];
extern const size_t template_host_n_dirs;

/* Directories made in each sandbox's first layer. */
struct owned_dir {
	const char *path;
	mode_t mode;
	/* Where uid 0 is there, too; where it is not, only `uid` 1000 says who. */
	enum { OWNED_ROOT, OWNED_USER, OWNED_AGENT } owner;
};
extern const struct owned_dir template_host_owned[];
extern const size_t template_host_n_owned;

/* Fills the empty directory `skel`, reading from the host's tree at `host`. -1 with errno. */
int template_host_skeleton(const char *skel, const char *host);
