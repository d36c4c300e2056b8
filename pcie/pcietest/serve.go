package pcietest

func (c *Controller) closeServers() {}
