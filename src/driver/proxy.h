/* The process of cordon-proxy, which carries a command's connections: its start and its end. The messages on its
 * socket are in net/proxy-message.h. It shares nothing with its caller: no file, no signal, no terminal, no
 * environment; and it ends when the supervisor's end of the socket is closed.
 *
 * open → start → (messages sent before wait for it) … → end */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct proxy_process {
	int fd;                         /* our end of its socket */
	int child_fd;                   /* the other, until it is started */
	int pidfd;                      /* -1 before; where there are none, its number, until it is ended */
};

/* Its socket alone. */
int proxy_open(struct proxy_process *ret_process, struct cordon_error *err) must_check;
/* Executes `program_fd`. From any thread; nothing else of the caller's waits for it. */
int proxy_start(struct proxy_process *process, int program_fd, struct cordon_error *err) must_check;
/* At once; what is left of it is reaped later (driver/linux/linger.h). Closes everything. For one that was never
 * started, too. */
void proxy_end(struct proxy_process *process);
/* At once, and no more than that: from another thread than its owner's. */
void proxy_kill(const struct proxy_process *process);

/* A descriptor of the embedded program, made once per process; borrowed. */
int proxy_program_fd(struct cordon_error *err) must_check;

/* The same of cordon-gateway. */
int proxy_gateway_fd(struct cordon_error *err) must_check;

/* Between clone and exec; in child-proxy.c. */
struct proxy_launch {
	int program_fd, socket_fd;
	int pidfd;
	long failure;                   /* a negative errno */
};
/* Clones it, on this stack. A pid or a negative errno. */
long proxy_clone(struct proxy_launch *launch, void *stack, size_t size);
