#include "cli/common/tidy.h"

#include <signal.h>
#include <stddef.h>

#include "base/mem.h"

static void (*volatile tidied)(void);

static void tidy_on_signal(int number)
{
	void (*tidy)(void) = tidied;

	if (tidy)
		tidy();
	signal(number, SIG_DFL);
	raise(number); /* which ends the program once this has returned */
}

void tidy_set(void (*tidy)(void))
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	const struct sigaction act = { .sa_handler = tidy_on_signal };
	struct sigaction was;

	tidied = tidy;
	for (size_t i = 0; tidy && i < ARRAY_LEN(signals); i++) {
		/* what the program or who began it has said of a signal stays */
		if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
			sigaction(signals[i], &act, NULL);
	}
}
