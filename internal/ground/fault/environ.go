package fault

import (
	"fmt"
	"os"
	"sync"
)

// environment is the plan of this process, nil without PAWL_FAULTS=1. It is
// read at the first hit and not at start: then all points are declared.
var environment = sync.OnceValue(func() *Plan {
	if os.Getenv("PAWL_FAULTS") != "1" {
		return nil
	}
	plan, err := fromEnvironment(os.Getenv)
	if err != nil {
		panic("fault: " + err.Error())
	}
	return plan
})

func fromEnvironment(getenv func(string) string) (*Plan, error) {
	plan := &Plan{}
	if spec := getenv("PAWL_FAIL_AT"); spec != "" {
		var err error
		if plan, err = Parse(spec); err != nil {
			return nil, fmt.Errorf("PAWL_FAIL_AT: %w", err)
		}
	}
	if where := getenv("PAWL_CRASH_AT"); where != "" {
		if err := plan.addRule(where, killSelf); err != nil {
			return nil, fmt.Errorf("PAWL_CRASH_AT: %w", err)
		}
	}
	if name := getenv("PAWL_FAULT_TRACE"); name != "" {
		// Appending, because several processes of one test share the file.
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("PAWL_FAULT_TRACE: %w", err)
		}
		plan.trace = file
	}
	return plan, nil
}
