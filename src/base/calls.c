#include "base/calls.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>

/* A jump reaches 255 instructions. */
enum { HEAD = 4, CALLS_MAX = 200, TAIL = 8 };

int calls_allow(const int *allowed, size_t n, const struct calls_if *also)
{
	const uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) +
				       also->arg * sizeof(((struct seccomp_data *)0)->args[0]));
	const struct sock_filter tail[TAIL] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)also->call, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, also->values[0], 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, also->values[1], 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, also->values[2], 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, also->values[3], 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_filter code[HEAD + CALLS_MAX + TAIL] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	const struct sock_fprog program = { .len = (unsigned short)(HEAD + n + TAIL),
					    .filter = code };

	if (n > CALLS_MAX) {
		errno = E2BIG;
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		code[HEAD + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							      (uint32_t)allowed[i],
							      (uint8_t)(n - i + TAIL - 2), 0);
	memcpy(code + HEAD + n, tail, sizeof(tail));
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
