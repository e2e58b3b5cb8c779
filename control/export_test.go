package control

import "time"

func init() { queryWait = 30 * time.Second }
