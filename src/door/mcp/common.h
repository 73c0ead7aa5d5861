#pragma once
/* Shared by several tools. */
#include "box/host/box.h"
#include "call/call.h"
#include "hub/sandbox/sandbox.h"
#include "json/field/field.h"

/* The first argument of all but sandbox_create. */
#define TOOL_SANDBOX                                                                               \
	{                                                                                          \
		"sandbox", .doc = "Sandbox id."                                                    \
	}
