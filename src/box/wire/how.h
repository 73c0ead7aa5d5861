#pragma once
/* How a program is started, as whoever asks for it says. Each part hands it on as it is, from the
 * request to init. Zeros: as without it. */

struct exec_how {
	/* ERR_INVALID for root in a sandbox without */
	enum exec_user { EXEC_AS_SANDBOX, EXEC_AS_USER, EXEC_AS_ROOT } user;
};
