#pragma once
/* A process's own seccomp filter: a short list of system calls, and one more by an argument. All
 * others fail with EPERM; those of another architecture kill the process. */
#include <linux/audit.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define CALLS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CALLS_ARCH AUDIT_ARCH_AARCH64
#else
#error "no system-call table for this machine yet"
#endif

/* A system call that is allowed if argument number arg has one of the values. */
struct calls_if {
	int call;
	unsigned arg;
	uint32_t values[4];
};

/* At most 200 calls. 0, or -1 with errno. */
int calls_allow(const int *allowed, size_t n, const struct calls_if *also)
	__attribute__((warn_unused_result));
