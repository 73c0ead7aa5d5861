/* The system-call filter, run by an interpreter of its language instead of the kernel: every
 * number, against a list that was written the other way round (what is shut, not what is open),
 * and the arguments that are looked at. */
#include "../unit/test.h"
#include "box/warden/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <asm/unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define OTHER_ARCH AUDIT_ARCH_I386
#else
#define ARCH AUDIT_ARCH_AARCH64
#define OTHER_ARCH AUDIT_ARCH_ARM
#endif

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif

#define ALLOW SECCOMP_RET_ALLOW
#define FAIL(errnum) (SECCOMP_RET_ERRNO | (errnum))

#define HIGH (UINT64_C(0xdeadbeef) << 32) /* what the kernel itself does not look at */

static struct seccomp_filter filter, debug_filter;

/* ---- the interpreter ------------------------------------------------------------------------- */

static uint32_t load(const struct seccomp_data *d, uint32_t at)
{
	uint32_t word;

	assert_true(at % 4 == 0 && at + 4 <= sizeof(*d));
	memcpy(&word, (const char *)d + at, sizeof(word));
	return word;
}

static int jump_holds(const struct sock_filter *i, uint32_t a)
{
	switch (BPF_OP(i->code)) {
	case BPF_JEQ:
		return a == i->k;
	case BPF_JGE:
		return a >= i->k;
	case BPF_JGT:
		return a > i->k;
	case BPF_JSET:
		return (a & i->k) != 0;
	default:
		fail_msg("a jump that is not understood: %#x", i->code);
		return 0;
	}
}

/* The verdict, and in *ret_steps how many instructions it took. */
static uint32_t run_in(const struct seccomp_filter *f, const struct seccomp_data *d,
		       unsigned *ret_steps)
{
	uint32_t a = 0;
	unsigned pc = 0;

	for (*ret_steps = 1;; (*ret_steps)++) {
		const struct sock_filter *i = &f->insns[pc];

		if (pc >= f->n)
			fail_msg("ran off the end");
		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
			assert_int_equal(i->code, BPF_LD | BPF_W | BPF_ABS);
			a = load(d, i->k);
			pc++;
			break;
		case BPF_JMP:
			if (BPF_OP(i->code) == BPF_JA)
				pc += 1 + i->k;
			else
				pc += 1u + (jump_holds(i, a) ? i->jt : i->jf);
			break;
		case BPF_ALU:
			assert_int_equal(i->code, BPF_ALU | BPF_AND | BPF_K);
			a &= i->k;
			pc++;
			break;
		case BPF_RET:
			return i->k;
		default:
			fail_msg("an instruction that is not understood: %#x", i->code);
		}
	}
}

static uint32_t run(const struct seccomp_data *d, unsigned *ret_steps)
{
	return run_in(&filter, d, ret_steps);
}

static uint32_t verdict(int nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	const struct seccomp_data d = { .nr = nr, .arch = ARCH, .args = { a0, a1, a2, a3 } };
	unsigned steps;

	return run(&d, &steps);
}

static int setup(void **state)
{
	return seccomp_build(&filter, 0) < 0 ? -1 : seccomp_build(&debug_filter, SECCOMP_DEBUG);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* What is shut, and how. Numbers that nobody has given to a call yet are ENOSYS. */
static const struct {
	int nr, errnum;
} shut[] = {
#define SHUT(name, errnum)                                                                         \
	{                                                                                          \
		__NR_##name, errnum                                                                \
	}
	/* roots, mounts, namespaces */
	SHUT(mount, EPERM),
	SHUT(umount2, EPERM),
	SHUT(pivot_root, EPERM),
	SHUT(chroot, EPERM),
	SHUT(unshare, EPERM),
	SHUT(setns, EPERM),
	SHUT(open_tree, EPERM),
	SHUT(move_mount, EPERM),
	SHUT(fsopen, EPERM),
	SHUT(fsconfig, EPERM),
	SHUT(fsmount, EPERM),
	SHUT(fspick, EPERM),
	SHUT(mount_setattr, EPERM),
	SHUT(swapon, EPERM),
	SHUT(swapoff, EPERM),
	SHUT(quotactl, EPERM),
	SHUT(quotactl_fd, EPERM),
	/* what a filter can't look into: their callers know an older call */
	SHUT(clone3, ENOSYS),
	SHUT(openat2, ENOSYS),
	/* files by number, and the eyes on all files */
	SHUT(name_to_handle_at, EPERM),
	SHUT(open_by_handle_at, EPERM),
	SHUT(fanotify_init, EPERM),
	SHUT(fanotify_mark, EPERM),
	/* other processes */
	SHUT(ptrace, EPERM),
	SHUT(process_vm_readv, EPERM),
	SHUT(process_vm_writev, EPERM),
	SHUT(process_madvise, EPERM),
	SHUT(process_mrelease, EPERM),
	SHUT(pidfd_getfd, EPERM),
	SHUT(kcmp, EPERM),
	SHUT(migrate_pages, EPERM),
	SHUT(move_pages, EPERM),
	/* wide doors */
	SHUT(bpf, EPERM),
	SHUT(perf_event_open, EPERM),
	SHUT(userfaultfd, EPERM),
	SHUT(add_key, EPERM),
	SHUT(request_key, EPERM),
	SHUT(keyctl, EPERM),
	SHUT(io_uring_setup, ENOSYS),
	SHUT(io_uring_enter, ENOSYS),
	SHUT(io_uring_register, ENOSYS),
	SHUT(memfd_secret, ENOSYS),
	SHUT(lookup_dcookie, EPERM),
	SHUT(nfsservctl, ENOSYS),
	SHUT(vhangup, EPERM),
	SHUT(remap_file_pages, ENOSYS),
	/* the machine */
	SHUT(reboot, EPERM),
	SHUT(kexec_load, EPERM),
	SHUT(kexec_file_load, EPERM),
	SHUT(init_module, EPERM),
	SHUT(finit_module, EPERM),
	SHUT(delete_module, EPERM),
	SHUT(acct, EPERM),
	SHUT(syslog, EPERM),
	SHUT(settimeofday, EPERM),
	SHUT(clock_settime, EPERM),
	SHUT(clock_adjtime, EPERM),
	SHUT(adjtimex, EPERM),
	SHUT(sethostname, EPERM),
	SHUT(setdomainname, EPERM),
#ifdef __x86_64__
	SHUT(uselib, EPERM),
	SHUT(ustat, ENOSYS),
	SHUT(sysfs, ENOSYS),
	SHUT(modify_ldt, EPERM),
	SHUT(_sysctl, ENOSYS),
	SHUT(iopl, EPERM),
	SHUT(ioperm, EPERM),
	SHUT(create_module, ENOSYS),
	SHUT(get_kernel_syms, ENOSYS),
	SHUT(query_module, ENOSYS),
	SHUT(getpmsg, ENOSYS),
	SHUT(putpmsg, ENOSYS),
	SHUT(afs_syscall, ENOSYS),
	SHUT(tuxcall, ENOSYS),
	SHUT(security, ENOSYS),
	SHUT(epoll_ctl_old, ENOSYS),
	SHUT(epoll_wait_old, ENOSYS),
	SHUT(vserver, ENOSYS),
#endif
#undef SHUT
};

/* The numbers that have a meaning and are not shut: from the kernel's own table of this machine. */
static const struct {
	int first, last;
} known[] = {
#ifdef __x86_64__
	{ 0, 334 },
	{ 424, 450 },
	{ 452, 452 },
#else
	{ 0, 37 }, { 38, 243 }, { 260, 294 }, { 424, 450 }, { 452, 452 },
#endif
};

static uint32_t expected(int nr)
{
	for (size_t i = 0; i < ARRAY_LEN(shut); i++) {
		if (shut[i].nr == nr)
			return FAIL((uint32_t)shut[i].errnum);
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (nr >= known[i].first && nr <= known[i].last)
			return ALLOW;
	}
	return FAIL(ENOSYS);
}

/* With arguments of 0, which no check objects to but that of prctl (a subreaper) and of sockets. */
static void test_every_number(void **state)
{
	for (int nr = 0; nr <= 1100; nr++) {
		uint64_t a0 = nr == __NR_socket || nr == __NR_socketpair ? AF_UNIX : 0;
		uint32_t is = verdict(nr, a0, 0, 0, 0);

		if (is != expected(nr))
			print_error("number %d: is %#x, not %#x\n", nr, is, expected(nr));
		assert_int_equal(is, expected(nr));
	}
}

static void test_strange_numbers(void **state)
{
	const int strange[] = { -1,
				INT32_MIN,
				INT32_MAX,
				0x40000000,
				0x40000000 | __NR_ptrace,
				0x40000000 | __NR_read,
				1024,
				4096,
				65536 };

	for (size_t i = 0; i < ARRAY_LEN(strange); i++)
		assert_int_not_equal(verdict(strange[i], 0, 0, 0, 0), ALLOW);
}

static void test_other_machines(void **state)
{
	const uint32_t arches[] = { OTHER_ARCH, 0, UINT32_MAX, ARCH ^ 1, AUDIT_ARCH_S390X };
	unsigned steps;

	for (size_t i = 0; i < ARRAY_LEN(arches); i++) {
		for (int nr = 0; nr < 500; nr++) {
			const struct seccomp_data d = { .nr = nr, .arch = arches[i] };

			assert_int_equal(run(&d, &steps), SECCOMP_RET_KILL_PROCESS);
		}
	}
}

/* Where programs may trace each other just three calls are open besides, but not on PID 1. */
static void test_debug(void **state)
{
	const struct {
		int nr;
		unsigned pid; /* the argument that names the process */
	} open[] = { { __NR_ptrace, 1 },
		     { __NR_process_vm_readv, 0 },
		     { __NR_process_vm_writev, 0 } };
	unsigned steps;

	for (int nr = 0; nr <= 1100; nr++) {
		struct seccomp_data d = { .nr = nr, .arch = ARCH };
		uint32_t was = run(&d, &steps), is = run_in(&debug_filter, &d, &steps);
		size_t i = 0;

		while (i < ARRAY_LEN(open) && open[i].nr != nr)
			i++;
		if (i == ARRAY_LEN(open)) {
			assert_int_equal(is, was);
			continue;
		}
		assert_int_equal(was, FAIL(EPERM));
		assert_int_equal(is, ALLOW);
		d.args[open[i].pid] = 2;
		assert_int_equal(run_in(&debug_filter, &d, &steps), ALLOW);
		d.args[open[i].pid] = HIGH | 1; /* the kernel looks at 32 bits */
		assert_int_equal(run_in(&debug_filter, &d, &steps), FAIL(EPERM));
	}
}

/* Where there is root, the filter differs in modes alone. */
static void test_set_id(void **state)
{
	static const int mode_calls[] = {
		__NR_fchmod, __NR_fchmodat, 452 /* fchmodat2 */, __NR_mknodat, __NR_openat,
#ifdef __x86_64__
		__NR_chmod,  __NR_creat,    __NR_mknod,		 __NR_open
#endif
	};
	static struct seccomp_filter with;
	unsigned steps;

	assert_int_equal(seccomp_build(&with, SECCOMP_SET_ID), 0);
	for (int nr = 0; nr <= 1100; nr++) {
		const struct seccomp_data d = { .nr = nr,
						.arch = ARCH,
						.args = { 06777, 06777, 06777, 06777 } };
		uint32_t was = run(&d, &steps), is = run_in(&with, &d, &steps);
		size_t i = 0;

		while (i < ARRAY_LEN(mode_calls) && mode_calls[i] != nr)
			i++;
		assert_int_equal(is, i < ARRAY_LEN(mode_calls) ? ALLOW : was);
		assert_true(i == ARRAY_LEN(mode_calls) || was == FAIL(EPERM));
	}
}

/* Loading and each call pay for the walk. */
static void test_short(void **state)
{
	unsigned most = 0, steps;

	for (int nr = 0; nr <= 1100; nr++) {
		const struct seccomp_data d = { .nr = nr, .arch = ARCH };

		run(&d, &steps);
		most = steps > most ? steps : most;
	}
	assert_true(filter.n <= SECCOMP_INSNS_MAX);
	assert_true(most <= 32);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int nr;
	uint64_t a[4];
	uint32_t verdict;
} arguments[] = {
	{ "clone: thread",
	  __NR_clone,
	  { CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
	    CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID },
	  ALLOW },
	{ "clone: fork", __NR_clone, { 17 }, ALLOW },
	{ "clone: vfork", __NR_clone, { CLONE_VM | CLONE_VFORK | 17 }, ALLOW },
	{ "clone: user", __NR_clone, { CLONE_NEWUSER }, FAIL(EPERM) },
	{ "clone: mounts", __NR_clone, { CLONE_NEWNS | 17 }, FAIL(EPERM) },
	{ "clone: pid", __NR_clone, { CLONE_NEWPID | 17 }, FAIL(EPERM) },
	{ "clone: net", __NR_clone, { CLONE_NEWNET | 17 }, FAIL(EPERM) },
	{ "clone: ipc", __NR_clone, { CLONE_NEWIPC | 17 }, FAIL(EPERM) },
	{ "clone: uts", __NR_clone, { CLONE_NEWUTS | 17 }, FAIL(EPERM) },
	{ "clone: cgroup", __NR_clone, { CLONE_NEWCGROUP | 17 }, FAIL(EPERM) },
	{ "clone: among others",
	  __NR_clone,
	  { CLONE_VM | CLONE_NEWUSER | CLONE_THREAD },
	  FAIL(EPERM) },
	{ "clone: high bits", __NR_clone, { HIGH | CLONE_NEWUSER }, FAIL(EPERM) },
	{ "socket: unix", __NR_socket, { AF_UNIX, SOCK_STREAM }, ALLOW },
	{ "socket: inet", __NR_socket, { AF_INET, SOCK_STREAM }, ALLOW },
	{ "socket: inet6", __NR_socket, { AF_INET6, SOCK_DGRAM }, ALLOW },
	{ "socket: tcp", __NR_socket, { AF_INET, SOCK_STREAM, IPPROTO_TCP }, ALLOW },
	{ "socket: udp", __NR_socket, { AF_INET6, SOCK_DGRAM, IPPROTO_UDP }, ALLOW },
	{ "socket: ping", __NR_socket, { AF_INET, SOCK_DGRAM, IPPROTO_ICMP }, ALLOW },
	{ "socket: ping6", __NR_socket, { AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6 }, ALLOW },
	{ "socket: sctp",
	  __NR_socket,
	  { AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP },
	  FAIL(EPROTONOSUPPORT) },
	{ "socket: dccp", __NR_socket, { AF_INET6, 6, IPPROTO_DCCP }, FAIL(EPROTONOSUPPORT) },
	{ "socket: udplite",
	  __NR_socket,
	  { AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE },
	  FAIL(EPROTONOSUPPORT) },
	{ "socket: l2tp", __NR_socket, { AF_INET, SOCK_DGRAM, 115 }, FAIL(EPROTONOSUPPORT) },
	{ "socket: mptcp",
	  __NR_socket,
	  { AF_INET, SOCK_STREAM, IPPROTO_MPTCP },
	  FAIL(EPROTONOSUPPORT) },
	{ "socket: smc", __NR_socket, { AF_INET, SOCK_STREAM, 256 }, FAIL(EPROTONOSUPPORT) },
	{ "socket: protocol, high bits",
	  __NR_socket,
	  { AF_INET, SOCK_SEQPACKET, HIGH | IPPROTO_SCTP },
	  FAIL(EPROTONOSUPPORT) },
	{ "socket: raw", __NR_socket, { AF_INET, SOCK_RAW, IPPROTO_RAW }, FAIL(EPROTONOSUPPORT) },
	{ "socket: route", __NR_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE }, ALLOW },
	{ "socket: netfilter",
	  __NR_socket,
	  { AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER },
	  FAIL(EAFNOSUPPORT) },
	{ "socket: audit",
	  __NR_socket,
	  { AF_NETLINK, SOCK_RAW, NETLINK_AUDIT },
	  FAIL(EAFNOSUPPORT) },
	{ "socket: packet", __NR_socket, { AF_PACKET, SOCK_RAW }, FAIL(EAFNOSUPPORT) },
	{ "socket: vsock", __NR_socket, { AF_VSOCK, SOCK_STREAM }, FAIL(EAFNOSUPPORT) },
	{ "socket: alg", __NR_socket, { AF_ALG, SOCK_SEQPACKET }, FAIL(EAFNOSUPPORT) },
	{ "socket: xdp", __NR_socket, { 44, SOCK_RAW }, FAIL(EAFNOSUPPORT) },
	{ "socket: bluetooth", __NR_socket, { AF_BLUETOOTH, SOCK_RAW }, FAIL(EAFNOSUPPORT) },
	{ "socket: tipc", __NR_socket, { AF_TIPC, SOCK_RAW }, FAIL(EAFNOSUPPORT) },
	{ "socket: unspecified", __NR_socket, { AF_UNSPEC }, FAIL(EAFNOSUPPORT) },
	{ "socket: high bits", __NR_socket, { HIGH | AF_PACKET }, FAIL(EAFNOSUPPORT) },
	{ "socketpair: unix", __NR_socketpair, { AF_UNIX }, ALLOW },
	{ "socketpair: tipc", __NR_socketpair, { AF_TIPC }, FAIL(EAFNOSUPPORT) },
	{ "ioctl: size of the window", __NR_ioctl, { 0, TIOCGWINSZ }, ALLOW },
	{ "ioctl: push a character", __NR_ioctl, { 0, TIOCSTI }, FAIL(EPERM) },
	{ "ioctl: the console's", __NR_ioctl, { 0, TIOCLINUX }, FAIL(EPERM) },
	{ "ioctl: another line discipline", __NR_ioctl, { 0, TIOCSETD }, FAIL(EPERM) },
	{ "ioctl: take the console", __NR_ioctl, { 0, TIOCCONS }, FAIL(EPERM) },
	{ "ioctl: the other end of a terminal", __NR_ioctl, { 0, TIOCGPTPEER }, ALLOW },
	{ "ioctl: its controlling terminal", __NR_ioctl, { 0, TIOCSCTTY }, ALLOW },
	{ "ioctl: high bits", __NR_ioctl, { 0, HIGH | TIOCSTI }, FAIL(EPERM) },
	{ "fchmod", __NR_fchmod, { 3, 0755 }, ALLOW },
	{ "fchmod: sticky", __NR_fchmod, { 3, 01777 }, ALLOW },
	{ "fchmod: set-user-id", __NR_fchmod, { 3, 04755 }, FAIL(EPERM) },
	{ "fchmod: set-group-id", __NR_fchmod, { 3, 02755 }, FAIL(EPERM) },
	{ "fchmod: high bits", __NR_fchmod, { 3, HIGH | 04755 }, FAIL(EPERM) },
	{ "fchmodat", __NR_fchmodat, { 3, 0, 0644 }, ALLOW },
	{ "fchmodat: set-user-id", __NR_fchmodat, { 3, 0, 04644 }, FAIL(EPERM) },
	{ "fchmodat2: set-group-id", __NR_fchmodat2, { 3, 0, 02644 }, FAIL(EPERM) },
	{ "mknodat: fifo", __NR_mknodat, { 3, 0, S_IFIFO | 0600 }, ALLOW },
	{ "mknodat: set-user-id", __NR_mknodat, { 3, 0, S_IFREG | 04755 }, FAIL(EPERM) },
	{ "openat: read",
	  __NR_openat,
	  { 3, 0, O_RDONLY, 07777 },
	  ALLOW }, /* the mode is not used */
	{ "openat: create", __NR_openat, { 3, 0, O_CREAT | O_WRONLY, 0644 }, ALLOW },
	{ "openat: create set-user-id", __NR_openat, { 3, 0, O_CREAT, 04755 }, FAIL(EPERM) },
	{ "openat: nameless", __NR_openat, { 3, 0, O_TMPFILE | O_RDWR, 0600 }, ALLOW },
	{ "openat: nameless set-user-id",
	  __NR_openat,
	  { 3, 0, O_TMPFILE | O_RDWR, 04700 },
	  FAIL(EPERM) },
	{ "openat: a directory", __NR_openat, { 3, 0, O_DIRECTORY, 04755 }, ALLOW },
	{ "personality: ask", __NR_personality, { 0xffffffff }, ALLOW },
	{ "personality: the usual", __NR_personality, { 0 }, ALLOW },
	{ "personality: no randomisation", __NR_personality, { 0x0040000 }, FAIL(EPERM) },
	{ "mmap", __NR_mmap, { 0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS }, ALLOW },
	{ "mmap: huge pages",
	  __NR_mmap,
	  { 0, 2 << 20, 3, HIGH | MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (21 << 26) },
	  FAIL(ENOMEM) },
	{ "memfd_create", __NR_memfd_create, { 0, MFD_CLOEXEC | MFD_ALLOW_SEALING }, ALLOW },
	{ "memfd_create: huge pages", __NR_memfd_create, { 0, HIGH | MFD_HUGETLB }, FAIL(ENOMEM) },
	{ "memfd_create: all flags", __NR_memfd_create, { 0, ~0u }, FAIL(EINVAL) },
	{ "shmget", __NR_shmget, { 0, 4096, IPC_CREAT | 0600 }, ALLOW },
	{ "shmget: huge pages", __NR_shmget, { 0, 2 << 20, HIGH | SHM_HUGETLB }, FAIL(ENOMEM) },
	{ "prctl: name", __NR_prctl, { PR_SET_NAME, 0 }, ALLOW },
	{ "prctl: subreaper", __NR_prctl, { PR_SET_CHILD_SUBREAPER, 1 }, ALLOW },
	{ "prctl: no subreaper", __NR_prctl, { PR_SET_CHILD_SUBREAPER, 0 }, FAIL(EPERM) },
	{ "prctl: high bits", __NR_prctl, { HIGH | PR_SET_CHILD_SUBREAPER, 0 }, FAIL(EPERM) },
#ifdef __x86_64__
	{ "open: create", __NR_open, { 0, O_CREAT | O_EXCL, 0600 }, ALLOW },
	{ "open: read", __NR_open, { 0, O_RDONLY, 04755 }, ALLOW },
	{ "open: create set-group-id", __NR_open, { 0, O_CREAT, 02755 }, FAIL(EPERM) },
	{ "open: nameless set-user-id",
	  __NR_open,
	  { 0, O_TMPFILE | O_WRONLY, 04755 },
	  FAIL(EPERM) },
	{ "creat", __NR_creat, { 0, 0644 }, ALLOW },
	{ "creat: set-user-id", __NR_creat, { 0, 04755 }, FAIL(EPERM) },
	{ "chmod", __NR_chmod, { 0, 0777 }, ALLOW },
	{ "chmod: set-user-id", __NR_chmod, { 0, 06755 }, FAIL(EPERM) },
	{ "mknod: set-group-id", __NR_mknod, { 0, S_IFREG | 02755 }, FAIL(EPERM) },
#endif
};

static void test_arguments(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(arguments); i++) {
		const uint64_t *a = arguments[i].a;

		ROW_CHECK(verdict(arguments[i].nr, a[0], a[1], a[2], a[3]) == arguments[i].verdict,
			  arguments[i].name);
	}
}

/* Jumps stay inside, forward, and every way ends in a verdict: as the kernel demands. */
static void test_well_formed(void **state)
{
	for (unsigned pc = 0; pc < filter.n; pc++) {
		const struct sock_filter *i = &filter.insns[pc];

		if (BPF_CLASS(i->code) != BPF_JMP)
			continue;
		if (BPF_OP(i->code) == BPF_JA)
			assert_true(pc + 1 + i->k < filter.n);
		else
			assert_true(pc + 1u + i->jt < filter.n && pc + 1u + i->jf < filter.n);
	}
	assert_int_equal(BPF_CLASS(filter.insns[filter.n - 1].code), BPF_RET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number),   cmocka_unit_test(test_strange_numbers),
		cmocka_unit_test(test_other_machines), cmocka_unit_test(test_debug),
		cmocka_unit_test(test_set_id),	       cmocka_unit_test(test_short),
		cmocka_unit_test(test_arguments),      cmocka_unit_test(test_well_formed),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
