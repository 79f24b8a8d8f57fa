package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// nameNodes names the nodes that need no name and have none: "map-1" is the
// first of its kind. The names depend on nothing but the graph, so two
// processes that build the same program agree on them; a name that the user
// took is passed over.
func nameNodes(nodes []Node) {
	taken := map[string]bool{}
	for _, n := range nodes {
		taken[n.Name] = true
	}
	count := map[string]int{}
	for i := range nodes {
		if nodes[i].Name != "" || nodes[i].Named || nodes[i].Stateful {
			continue
		}
		for nodes[i].Name == "" {
			count[nodes[i].Kind]++
			if name := fmt.Sprintf("%s-%d", nodes[i].Kind, count[nodes[i].Kind]); !taken[name] {
				taken[name] = true
				nodes[i].Name = name
			}
		}
	}
}

// near returns at most three of names that look like name, the most alike
// first, for messages.
func near(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var cs []candidate
	for _, n := range names {
		d := distance(name, n)
		if n != name && d <= max(2, (max(len(name), len(n))+1)/2) {
			cs = append(cs, candidate{n, d})
		}
	}
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range cs[:min(3, len(cs))] {
		out = append(out, c.name)
	}
	return out
}

// distance is the number of bytes to insert, delete or replace to make a of b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			keep := diagonal
			if a[i] != b[j] {
				keep++
			}
			diagonal = row[j+1]
			row[j+1] = min(keep, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
