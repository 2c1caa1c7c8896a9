package compare

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/limits"
)

// leastPartChange is the change of a part in seconds from which on it is mentioned: users do not notice a smaller one.
const leastPartChange = 0.00001

// divided says, for each group except the first, where a transaction spent more or less time, if a proxy was in front of
// the servers of a group; empty otherwise, and if the time of one of the groups could not be divided.
func (c *Comparison) divided(groups []Group) string {
	all := make([]*limits.Division, len(groups))
	proxied := false
	for i := range groups {
		if all[i] = meanDivision(&groups[i]); all[i] == nil {
			return ""
		}
		proxied = proxied || all[i].Proxies != ""
	}
	if !proxied {
		return ""
	}
	var sentences []string
	for i := 1; i < len(groups); i++ {
		from, to := all[0], all[i]
		changes := []string{}
		for _, part := range []struct {
			change float64
			where  string
		}{
			{to.Queue - from.Queue, "in the queue of " + names(from, to)},
			{to.Proxy - from.Proxy, "in " + names(from, to) + " and on the network"},
			{to.Server - from.Server, "in the servers"},
			{to.Client - from.Client, "in " + to.Tool},
		} {
			switch {
			case part.change >= leastPartChange:
				changes = append(changes, table.Milliseconds.Signed(part.change)+" more "+part.where)
			case part.change <= -leastPartChange:
				changes = append(changes, table.Milliseconds.Signed(-part.change)+" less "+part.where)
			}
		}
		if len(changes) == 0 {
			continue
		}
		sentences = append(sentences, fmt.Sprintf("A transaction of %s took %s ms instead of %s ms: %s", c.Groups[i],
			table.Milliseconds.Format(to.Transaction), table.Milliseconds.Format(from.Transaction), strings.Join(changes, ", ")))
	}
	return strings.Join(sentences, ". ")
}

func names(a, b *limits.Division) string {
	if a.Proxies == "" || a.Proxies == b.Proxies {
		return b.Proxies
	}
	if b.Proxies == "" {
		return a.Proxies
	}
	return a.Proxies + " and " + b.Proxies
}

// meanDivision is the mean of the divisions of a group's runs; nil if one has none.
func meanDivision(g *Group) *limits.Division {
	var mean limits.Division
	n := float64(len(g.Runs))
	for i := range g.Runs {
		v := g.Runs[i].Limits
		if v == nil || v.Division == nil {
			return nil
		}
		d := v.Division
		mean.Transaction += d.Transaction / n
		mean.Client += d.Client / n
		mean.Queue += d.Queue / n
		mean.Server += d.Server / n
		mean.Proxy += d.Proxy / n
		mean.Proxies, mean.Tool = d.Proxies, d.Tool
	}
	if n == 0 {
		return nil
	}
	return &mean
}
