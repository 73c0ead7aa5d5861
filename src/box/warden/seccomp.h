#pragma once
/*
 * The system-call filter of every sandbox: an allow-list, see the table in seccomp.c. The warden
 * builds it once; each new sandbox only loads it. It is a balanced tree over ranges of call
 * numbers, whose branches end in shared verdicts: each instruction costs time and kernel memory
 * when the filter is loaded, and a call costs the instructions on its path.
 */
#include <linux/filter.h>
#include <stddef.h>

enum { SECCOMP_INSNS_MAX = 512 };

/* Additional rights of a sandbox: bits of its kind of filter. */
enum seccomp_kind {
	SECCOMP_DEBUG = 1, /* its programs trace each other and read each other's memory */
	SECCOMP_SET_ID = 2, /* set-user-id and set-group-id bits may be set */
	SECCOMP_KINDS = 4,
};

struct seccomp_filter {
	struct sock_filter insns[SECCOMP_INSNS_MAX];
	unsigned short n;
};

/* kind: bits of enum seccomp_kind. 0, or -1 if the table outgrew its space (a defect that the unit
 * test catches). */
int seccomp_build(struct seccomp_filter *ret_filter, unsigned kind);

/* Loads it for the calling thread, which must have no_new_privs, or CAP_SYS_ADMIN in its user
 * namespace. -1 with errno. */
int seccomp_load(const struct seccomp_filter *filter);
