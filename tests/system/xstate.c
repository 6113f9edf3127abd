/* Lets a guest run on processors whose register state is larger than its kernel knows.

   User-Mode Linux up to 6.1 restores 2,696 bytes of a process's extended registers (AVX-512 and
   protection keys). Linux refuses a part of them, and the whole takes 11,008 bytes on processors
   with AMX: each guest then ends at its first process ("put_fp_registers"). Loaded before the C
   library, this fills up what is too short with zeros, which is how unused registers look: no
   process of a guest can ask for AMX, since its kernel does not know the call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

typedef long (*ptrace_call)(int, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_call real;
	static __thread char whole[1 << 16] __attribute__((aligned(64)));
	struct iovec *given, all;
	pid_t pid;
	void *address, *data;
	va_list rest;

	va_start(rest, request);
	pid = va_arg(rest, pid_t);
	address = va_arg(rest, void *);
	data = va_arg(rest, void *);
	va_end(rest);
	if (!real)
		real = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
	if (request != PTRACE_SETREGSET || (long)address != NT_X86_XSTATE)
		return real(request, pid, address, data);
	all.iov_base = whole;
	all.iov_len = sizeof whole;
	given = data;
	if (real(PTRACE_GETREGSET, pid, address, &all) < 0 || given->iov_len >= all.iov_len)
		return real(request, pid, address, data);
	memset(whole, 0, all.iov_len);
	memcpy(whole, given->iov_base, given->iov_len);
	return real(request, pid, address, &all);
}
