#pragma once
/* Packs a directory or file as a tar archive for the body of a request: a child process writes it
 * into a pipe. */
#include <sys/types.h>

#include "base/err.h"
#include "box/archive/tar.h"

struct packer {
	char left_out[TAR_COMMENT_MAX]; /* once it has ended: how many, and the first; or "" */
	pid_t pid;
	int archive, verdict; /* ends of pipes */
	const char *path;
	bool ended; /* by itself, with all of it */
};

/* path: borrowed until packer_stop(). name: as in struct tar_pack_opts. */
int packer_start(struct packer *p, const char *path, const char *name, struct err *e) MUST_USE;
size_t packer_give(void *packer, char *to, size_t n, struct err *e); /* as hub_link_give */
void packer_stop(struct packer *p);
