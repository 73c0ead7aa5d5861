/* What changes or ends the machine. Nothing here may ever work, so outside it is only looked
 * whether root has the right. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/reboot.h>
#include <sys/io.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPT(name, call)                                                                        \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		return tried(f, (call));                                                           \
	}

/* "Don't restart on Ctrl-Alt-Del" is what does least. */
ATTEMPT(try_reboot, syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
			    LINUX_REBOOT_CMD_CAD_OFF, NULL))
ATTEMPT(try_kexec, syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0ul))
ATTEMPT(try_init_module, syscall(SYS_init_module, "", 0ul, ""))
ATTEMPT(try_finit_module, syscall(SYS_finit_module, STDIN_FILENO, "", 0))
ATTEMPT(try_delete_module, syscall(SYS_delete_module, "holt_none", O_NONBLOCK))
ATTEMPT(try_swapon, swapon("/workspace/none", 0))
ATTEMPT(try_swapoff, swapoff("/workspace/none"))
ATTEMPT(try_acct, acct("/workspace/none"))
ATTEMPT(try_syslog, syscall(SYS_syslog, 3 /* read all */, (char[64]){ 0 }, 64))
ATTEMPT(try_vhangup, vhangup())
#ifdef SYS_kexec_file_load
ATTEMPT(try_kexec_file, syscall(SYS_kexec_file_load, -1, -1, 0ul, NULL, 0ul))
#endif
#ifdef __x86_64__
ATTEMPT(try_iopl, iopl(3))
ATTEMPT(try_ioperm, ioperm(0x80, 1, 1))
#endif

/* Each sets the clock to what it is. */
static enum result try_settimeofday(struct found *f)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return tried(f, settimeofday(&now, NULL));
}

static enum result try_clock_settime(struct found *f)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return tried(f, clock_settime(CLOCK_REALTIME, &now));
}

static enum result try_adjtimex(struct found *f)
{
	struct timex t = { .modes = ADJ_TICK, .tick = 10000 };

	return tried(f, adjtimex(&t));
}

static enum result try_clock_adjtime(struct found *f)
{
	struct timex t = { .modes = ADJ_TICK, .tick = 10000 };

	return tried(f, clock_adjtime(CLOCK_REALTIME, &t));
}

#define NEEDS(number) LOOK, true, .capability = CAPABILITY(number)

static const struct attempt rows[] = {
	{ "reboot", "reboot", "seccomp, no capability", try_reboot, NEEDS(CAP_SYS_BOOT) },
	{ "kexec_load", "kexec_load", "seccomp, no capability", try_kexec, NEEDS(CAP_SYS_BOOT) },
#ifdef SYS_kexec_file_load
	{ "kexec_file_load", "kexec_file_load", "seccomp, no capability", try_kexec_file,
	  NEEDS(CAP_SYS_BOOT) },
#endif
	{ "init_module", "init_module", "seccomp, no capability", try_init_module,
	  NEEDS(CAP_SYS_MODULE) },
	{ "finit_module", "finit_module", "seccomp, no capability", try_finit_module,
	  NEEDS(CAP_SYS_MODULE) },
	{ "delete_module", "delete_module", "seccomp, no capability", try_delete_module,
	  NEEDS(CAP_SYS_MODULE) },
	{ "swapon", "swapon", "seccomp, no capability", try_swapon, NEEDS(CAP_SYS_ADMIN) },
	{ "swapoff", "swapoff", "seccomp, no capability", try_swapoff, NEEDS(CAP_SYS_ADMIN) },
	{ "acct", "acct: process accounting into a file", "seccomp, no capability", try_acct,
	  NEEDS(CAP_SYS_PACCT) },
	{ "syslog", "syslog: the kernel's log", "seccomp, no capability", try_syslog,
	  NEEDS(CAP_SYSLOG) },
	{ "vhangup", "vhangup", "seccomp, no capability", try_vhangup, NEEDS(CAP_SYS_TTY_CONFIG) },
#ifdef __x86_64__
	{ "iopl", "iopl: the machine's ports", "seccomp, no capability", try_iopl,
	  NEEDS(CAP_SYS_RAWIO) },
	{ "ioperm", "ioperm", "seccomp, no capability", try_ioperm, NEEDS(CAP_SYS_RAWIO) },
#endif
	{ "settimeofday", "settimeofday", "seccomp, no capability", try_settimeofday,
	  NEEDS(CAP_SYS_TIME) },
	{ "clock_settime", "clock_settime", "seccomp, no capability", try_clock_settime,
	  NEEDS(CAP_SYS_TIME) },
	{ "adjtimex", "adjtimex", "seccomp, no capability", try_adjtimex, NEEDS(CAP_SYS_TIME) },
	{ "clock_adjtime", "clock_adjtime", "seccomp, no capability", try_clock_adjtime,
	  NEEDS(CAP_SYS_TIME) },
};

const struct attempts machine_attempts = { "The machine", rows, PROBE_LEN(rows) };
