/* How a directory of layers is laid out (session/layers.h): the driver and the file tools of this program agree on it.
 *
 *     OWNER           what it belongs to: a session's id, or the path of a workspace
 *     N.lock          locked by flock() while a sandbox has slot N mounted; never removed while the directory is there
 *     N/CACHE/        upper, work: of an overlay mount
 *
 * The kernel lets two overlay mounts have one upper directory and does not say what happens then: who has the lock of a
 * slot, has all its uppers alone. */
#pragma once

#define LAYER_SLOTS 8
#define LAYER_OWNER "owner"
#define LAYER_LOCK "%u.lock"
#define LAYER_SLOT "%u"
