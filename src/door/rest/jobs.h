#pragma once
/* What the routes of execs share. */
#include "door/http/common.h"

/* Of a projected route whose path names the exec. */
#define API_JOB_BY_PATH                                                                            \
	API_BY_PATH,                                                                               \
	{                                                                                          \
		"exec", .in = OP_PATH                                                              \
	}
