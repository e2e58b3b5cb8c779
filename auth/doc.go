// Package auth authenticates the callers of an HTTP endpoint. A [Guard] wraps a handler and admits requests whose bearer
// token one of its verifiers accepts. It knows neither the origin of tokens nor the purpose of the handler.
//
// # Decisions
//
//   - The guard protects everything but the health checks, and decides before the body is read. The handler gets the
//     identity as the SDK's TokenInfo, so the SDK binds its sessions to it; it does not get the token.
//   - As soon as any verifier knows of groups, a caller without groups may use no server: a forgotten line then shuts a caller
//     out, and admits nobody by mistake. For the same reason a file of tokens that has had groups counts as one with groups until the
//     process ends.
//   - The end of a token ends all sessions of its caller, because sessions belong to identities. To replace a token,
//     create the second one (`--another`) before you remove the first.
package auth
