#pragma once
/* Shared by the routes of execs. */
#include "door/http/common.h"

/* Members of a projected route whose path names the exec. */
#define API_JOB_BY_PATH                                                                            \
	API_BY_PATH,                                                                               \
	{                                                                                          \
		"exec", .in = OP_PATH                                                              \
	}
