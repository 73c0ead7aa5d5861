#pragma once
/*
 * The system-call filter of every sandbox: an allow-list, see the table in seccomp.c. It is put
 * together once by the warden; each new sandbox only loads it. Laid out as a balanced tree over
 * ranges of call numbers, whose branches end in verdicts that they share: loading pays for each
 * instruction, in time and in the kernel's memory, and a call for those that are walked.
 */
#include <linux/filter.h>
#include <stddef.h>

enum { SECCOMP_INSNS_MAX = 512 };

/* What a sandbox may do besides: bits of its kind of filter. */
enum seccomp_kind {
	SECCOMP_DEBUG = 1, /* its programs trace each other and read each other's memory */
	SECCOMP_SET_ID = 2, /* set-user-id and set-group-id bits may be set */
	SECCOMP_KINDS = 4,
};

struct seccomp_filter {
	struct sock_filter insns[SECCOMP_INSNS_MAX];
	unsigned short n;
};

/* kind: bits of enum seccomp_kind. 0, or -1 when the table outgrew the room (a defect, caught by
 * the unit test). */
int seccomp_build(struct seccomp_filter *ret_filter, unsigned kind);

/* Loads it for the calling thread, which must have no_new_privs, or CAP_SYS_ADMIN in its user
 * namespace. -1 with errno. */
int seccomp_load(const struct seccomp_filter *filter);
