"""Methods of the papers, each as its paper states it, and of those that the papers compare with."""
