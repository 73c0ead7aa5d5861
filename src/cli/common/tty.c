#include "cli/common/tty.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

static struct termios before; /* good once raw was set */
static volatile sig_atomic_t raw;

bool tty_size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
			*ret_columns = size.ws_col;
			*ret_rows = size.ws_row;
			return true;
		}
	}
	return false;
}

void tty_restore(void)
{
	if (raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	raw = 0;
}

/* The handler is gone when this runs, so the signal does what it would have done. */
static void on_fatal(int number)
{
	tty_restore();
	raise(number);
}

/* All that would end us and can be caught; those that somebody has us ignore stay ignored. */
static void catch_ends(void)
{
	static const int fatal[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGILL,	 SIGTRAP, SIGABRT,
				     SIGBUS,  SIGFPE,  SIGSEGV, SIGPIPE, SIGALRM, SIGTERM,
				     SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ };
	struct sigaction old,
		a = { .sa_handler = on_fatal, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };

	for (size_t i = 0; i < ARRAY_LEN(fatal); i++) {
		if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(fatal[i], &a, NULL);
	}
}

int tty_raw(struct err *e)
{
	struct termios t;

	if (!isatty(STDIN_FILENO))
		return 0;
	if (!raw) {
		if (tcgetattr(STDIN_FILENO, &before) < 0)
			return err_sys(e, errno, "the terminal");
		atexit(tty_restore);
		catch_ends();
		raw = 1;
	}
	t = before;
	cfmakeraw(&t);
	return tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0 ? err_sys(e, errno, "the terminal") : 0;
}
